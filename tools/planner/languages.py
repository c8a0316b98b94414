"""Fixed small templates in other languages: moves, turns, pictures, questions, pick and place."""

from __future__ import annotations

from tools.planner import phrases
from tools.planner.draw import Draw, Pair, finish, has_held_out_noun, random_scene, scene_of
from tools.planner.phrases import FLYING, Body

_MOVES = {
    "de": {"mf": "{v} {d} {n} vorwärts|{v} {d} {n} nach vorne|{v} {n} {d} geradeaus",
           "mb": "{v} {d} {n} zurück|{v} {n} {d} rückwärts",
           "ml": "{v} {d} {n} nach links", "mr": "{v} {d} {n} nach rechts",
           "mu": "{v} {d} {n} nach oben|steig {d} {n}|steige um {n} {d}|{v} {n} {d} höher",
           "md": "{v} {d} {n} nach unten|sinke {d} {n}|{v} {n} {d} tiefer"},
    "fr": {"mf": "avance de {n} {d}|va {n} devant {d}", "mb": "recule de {n} {d}",
           "ml": "va à gauche de {n} {d}|déplace-toi de {n} vers la gauche {d}",
           "mr": "va à droite de {n} {d}|déplace-toi de {n} vers la droite {d}",
           "mu": "monte de {n} {d}", "md": "descends de {n} {d}"},
    "es": {"mf": "avanza {n} {d}|ve {n} hacia adelante {d}",
           "mb": "retrocede {n} {d}|ve {n} hacia atrás {d}",
           "ml": "muévete {n} a la izquierda {d}", "mr": "muévete {n} a la derecha {d}",
           "mu": "sube {n} {d}", "md": "baja {n} {d}"},
    "it": {"mf": "vai avanti di {n} {d}|avanza di {n} {d}",
           "mb": "vai indietro di {n} {d}|indietreggia di {n} {d}",
           "ml": "spostati di {n} a sinistra {d}", "mr": "spostati di {n} a destra {d}",
           "mu": "sali di {n} {d}", "md": "scendi di {n} {d}"},
    "nl": {"mf": "{v} {d} {n} vooruit|{v} {n} naar voren {d}",
           "mb": "{v} {d} {n} achteruit|{v} {n} terug {d}",
           "ml": "{v} {d} {n} naar links", "mr": "{v} {d} {n} naar rechts",
           "mu": "stijg {d} {n}|{v} {n} omhoog {d}", "md": "daal {d} {n}|{v} {n} omlaag {d}"},
    "pt": {"mf": "avança {n} {d}|anda {n} para a frente {d}",
           "mb": "recua {n} {d}|anda {n} para trás {d}",
           "ml": "vai {n} para a esquerda {d}", "mr": "vai {n} para a direita {d}",
           "mu": "sobe {n} {d}", "md": "desce {n} {d}"},
    "ja": {"mf": "{n}前進して{d}|{n}前に進んで{d}", "mb": "{n}後退して{d}|{n}下がって{d}",
           "ml": "{n}左に移動して{d}",
           "mr": "{n}右に移動して{d}",
           "mu": "{n}上昇して{d}", "md": "{n}下降して{d}"},
    "zh": {"mf": "{d}前进{n}|{d}向前移动{n}", "mb": "{d}后退{n}",
           "ml": "{d}向左移动{n}", "mr": "{d}向右移动{n}",
           "mu": "{d}上升{n}", "md": "{d}下降{n}"},
}  # fmt: skip
_TURNS = {
    "de": {"tc": "dreh dich {d} {a} Grad nach rechts|drehe dich {d} um {a} Grad nach rechts",
           "tu": "dreh dich {d} {a} Grad nach links|drehe dich {d} um {a} Grad nach links",
           "half": "dreh dich {d} um|mach {d} eine halbe Drehung|dreh {d} um"},
    "fr": {"tc": "tourne de {a} degrés à droite {d}", "tu": "tourne de {a} degrés à gauche {d}",
           "half": "fais demi-tour {d}"},
    "es": {"tc": "gira {a} grados a la derecha {d}", "tu": "gira {a} grados a la izquierda {d}",
           "half": "da la vuelta {d}|gira media vuelta {d}"},
    "it": {"tc": "gira di {a} gradi a destra {d}|ruota di {a} gradi a destra {d}",
           "tu": "gira di {a} gradi a sinistra {d}|ruota di {a} gradi a sinistra {d}",
           "half": "fai mezzo giro {d}|girati {d}"},
    "nl": {"tc": "draai {d} {a} graden naar rechts", "tu": "draai {d} {a} graden naar links",
           "half": "draai {d} om|maak {d} een halve draai"},
    "pt": {"tc": "vira {a} graus à direita {d}|roda {a} graus para a direita {d}",
           "tu": "vira {a} graus à esquerda {d}|roda {a} graus para a esquerda {d}",
           "half": "dá meia volta {d}"},
    "ja": {"tc": "右に{a}度回転して{d}", "tu": "左に{a}度回転して{d}", "half": "後ろを向いて{d}"},
    "zh": {"tc": "{d}右转{a}度|{d}向右转{a}度", "tu": "{d}左转{a}度|{d}向左转{a}度",
           "half": "{d}掉头|{d}向后转"},
}  # fmt: skip
_PICTURES = {"de": "mach {d} ein Foto|fotografiere {d}", "fr": "prends une photo {d}",
             "es": "haz una foto {d}|toma una foto {d}",
             "it": "scatta una foto {d}|fai una foto {d}",
             "nl": "maak {d} een foto|neem {d} een foto", "pt": "tira uma foto {d}",
             "ja": "写真を撮って{d}", "zh": "{d}拍一张照片|{d}拍照"}  # fmt: skip
_WAITS = {"de": "warte {d} {s} Sekunden", "fr": "attends {s} secondes {d}",
          "es": "espera {s} segundos {d}", "it": "aspetta {s} secondi {d}",
          "nl": "wacht {d} {s} seconden", "pt": "espera {s} segundos {d}", "ja": "{s}秒待って{d}",
          "zh": "{d}等{s}秒"}  # fmt: skip
_PLEASE = {"de": "bitte", "fr": "s'il te plaît", "es": "por favor", "it": "per favore",
           "nl": "alsjeblieft", "pt": "por favor", "ja": "ください", "zh": "请"}  # fmt: skip
_THEN = {"de": " und |, dann | und dann | und danach ", "fr": " et |, puis | et ensuite ",
         "es": " y | y luego |, luego ", "it": " e | e poi |, poi ",
         "nl": " en | en dan |, daarna | en daarna ", "pt": " e | e depois |, depois ",
         "ja": "、|、次に", "zh": ",|,然后|,再"}  # fmt: skip
_METRES = {"de": "Meter", "fr": "mètres", "es": "metros", "it": "metri", "nl": "meter",
           "pt": "metros", "ja": "メートル", "zh": "米"}  # fmt: skip
_CENTIMETRES = {"de": "Zentimeter", "fr": "centimètres", "es": "centímetros", "it": "centimetri",
                "nl": "centimeter", "pt": "centímetros", "ja": "センチ", "zh": "厘米"}  # fmt: skip
_NUMBERS = {
    "de": {20: "zwanzig", 30: "dreißig", 40: "vierzig", 50: "fünfzig", 60: "sechzig",
           80: "achtzig", 90: "neunzig"},
    "fr": {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante"},
    "es": {20: "veinte", 30: "treinta", 40: "cuarenta", 50: "cincuenta", 60: "sesenta",
           80: "ochenta"},
    "it": {20: "venti", 30: "trenta", 40: "quaranta", 50: "cinquanta", 60: "sessanta",
           80: "ottanta"},
    "nl": {20: "twintig", 30: "dertig", 40: "veertig", 50: "vijftig", 60: "zestig", 80: "tachtig"},
    "pt": {20: "vinte", 30: "trinta", 40: "quarenta", 50: "cinquenta", 60: "sessenta"},
}  # fmt: skip
_FEW = {
    "de": {50: "einen halben Meter", 100: "einen Meter", 150: "anderthalb Meter",
           200: "zwei Meter", 300: "drei Meter"},
    "fr": {50: "un demi-mètre", 100: "un mètre", 150: "un mètre et demi", 200: "deux mètres",
           300: "trois mètres"},
    "es": {50: "medio metro", 100: "un metro", 150: "un metro y medio", 200: "dos metros",
           300: "tres metros"},
    "it": {50: "mezzo metro", 100: "un metro", 150: "un metro e mezzo", 200: "due metri",
           300: "tre metri"},
    "nl": {50: "een halve meter", 100: "een meter", 150: "anderhalve meter", 200: "twee meter",
           300: "drie meter"},
    "pt": {50: "meio metro", 100: "um metro", 150: "um metro e meio", 200: "dois metros",
           300: "três metros"},
    "ja": {100: "1メートル", 200: "2メートル", 150: "1.5メートル"},
    "zh": {100: "一米", 200: "两米", 300: "三米", 50: "半米"},
}  # fmt: skip
# English name: the same with its article in each of the languages of pick and place.
_THINGS = {
    "apple": "den Apfel|la pomme|la manzana|la mela|de appel",
    "ball": "den Ball|la balle|la pelota|la palla|de bal",
    "cup": "die Tasse|la tasse|la taza|la tazza|de kop",
    "bottle": "die Flasche|la bouteille|la botella|la bottiglia|de fles",
    "book": "das Buch|le livre|el libro|il libro|het boek",
    "box": "die Kiste|la boîte|la caja|la scatola|de doos",
    "key": "den Schlüssel|la clé|la llave|la chiave|de sleutel",
    "lemon": "die Zitrone|le citron|el limón|il limone|de citroen",
    "banana": "die Banane|la banane|el plátano|la banana|de banaan",
    "spoon": "den Löffel|la cuillère|la cuchara|il cucchiaio|de lepel",
    "fork": "die Gabel|la fourchette|el tenedor|la forchetta|de vork",
    "knife": "das Messer|le couteau|el cuchillo|il coltello|het mes",
    "pencil": "den Bleistift|le crayon|el lápiz|la matita|het potlood",
    "hammer": "den Hammer|le marteau|el martillo|il martello|de hamer",
    "red block": "den roten Klotz|le bloc rouge|el bloque rojo|il blocco rosso|het rode blok",
    "green block": "den grünen Klotz|le bloc vert|el bloque verde|il blocco verde|het groene blok",
    "blue cube": "den blauen Würfel|le cube bleu|el cubo azul|il cubo blu|de blauwe kubus",
    "yellow cube": "den gelben Würfel|le cube jaune|el cubo amarillo|il cubo giallo|de gele kubus",
    "chair": "den Stuhl|la chaise|la silla|la sedia|de stoel",
    "dog": "den Hund|le chien|el perro|il cane|de hond",
    "cat": "die Katze|le chat|el gato|il gatto|de kat",
    "lamp": "die Lampe|la lampe|la lámpara|la lampada|de lamp",
    "table": "den Tisch|la table|la mesa|il tavolo|de tafel",
    "door": "die Tür|la porte|la puerta|la porta|de deur",
    "tree": "den Baum|l'arbre|el árbol|l'albero|de boom",
    "car": "das Auto|la voiture|el coche|la macchina|de auto",
    "person": "die Person|la personne|la persona|la persona|de persoon",
}  # fmt: skip
_NAMES = [name for name in _THINGS if not has_held_out_noun(name)]
_SMALL = [name for name in list(_THINGS)[:18] if name in _NAMES]
_TARGETS = {
    "basket": "in den Korb|dans le panier|en la cesta|nel cestino|in de mand",
    "bowl": "in die Schüssel|dans le bol|en el cuenco|nella ciotola|in de kom",
    "box": "in die Kiste|dans la boîte|en la caja|nella scatola|in de doos",
    "plate": "auf den Teller|sur l'assiette|sobre el plato|sul piatto|op het bord",
    "tray": "auf das Tablett|sur le plateau|sobre la bandeja|sul vassoio|op het dienblad",
    "book": "auf das Buch|sur le livre|sobre el libro|sul libro|op het boek",
}  # fmt: skip
_SPOKEN = ("de", "fr", "es", "it", "nl")
_PLACE = {
    "de": "leg {x} {y}|nimm {x} und leg sie {y}|stell {x} {y}|nimm {x} und leg ihn {y}",
    "fr": "mets {x} {y}|prends {x} et mets-le {y}|pose {x} {y}",
    "es": "pon {x} {y}|coge {x} y ponlo {y}|toma {x} y ponla {y}",
    "it": "metti {x} {y}|prendi {x} e mettilo {y}",
    "nl": "leg {x} {y}|pak {x} en leg het {y}|zet {x} {y}",
}  # fmt: skip
_PICK = {"de": "nimm {x}|heb {x} auf|greif {x}", "fr": "prends {x}|attrape {x}|saisis {x}",
         "es": "coge {x}|toma {x}|agarra {x}", "it": "prendi {x}|afferra {x}",
         "nl": "pak {x}|pak {x} op|neem {x}"}  # fmt: skip
_HOLD = {"de": " und halt es {s} Sekunden fest", "fr": " et tiens-le {s} secondes",
         "es": " y sujétalo {s} segundos", "it": " e tienilo per {s} secondi",
         "nl": " en houd het {s} seconden vast"}  # fmt: skip
_SEE = {"de": "siehst du {x}?|kannst du {x} sehen?", "fr": "vois-tu {x}?|est-ce que tu vois {x} ?",
        "es": "¿ves {x}?|¿puedes ver {x}?", "it": "vedi {x}?|riesci a vedere {x}?",
        "nl": "zie je {x}?|kun je {x} zien?"}  # fmt: skip
_GO = {"de": "flieg zu {x}|geh näher an {x}", "fr": "va vers {x}|approche-toi: {x}",
       "es": "ve hasta {x}|acércate: {x}", "it": "vai verso {x}|avvicinati: {x}",
       "nl": "ga naar {x}|vlieg naar {x}"}  # fmt: skip
_FIND = {"de": "such {x}|finde {x}", "fr": "cherche {x}|trouve {x}",
         "es": "busca {x}|encuentra {x}", "it": "cerca {x}|trova {x}",
         "nl": "zoek {x}|vind {x}"}  # fmt: skip


def _one(draw: Draw, texts: str) -> str:
    return draw.pick(texts.split("|"))


def _length(draw: Draw, tongue: str, centimetres: int) -> str:
    if centimetres in _FEW[tongue] and draw.chance(0.5):
        return _FEW[tongue][centimetres]
    if centimetres % 50 == 0 and centimetres > 100 and draw.chance(0.5):
        comma = draw.pick((".", "," if tongue not in ("ja", "zh") else "."))
        return f"{centimetres / 100:g}".replace(".", comma) + draw.pick((" ", "")) + _METRES[tongue]
    number = _NUMBERS.get(tongue, {}).get(centimetres)
    unit = draw.pick((_CENTIMETRES[tongue], _CENTIMETRES[tongue], "cm"))
    if number and draw.chance(0.5):
        return f"{number} {unit}"
    return f"{centimetres}{'' if tongue in ('ja', 'zh') else ' '}{unit}"


def _some_size(draw: Draw, skill: str) -> int:
    most = 3 if skill in ("mu", "md") else 8
    return draw.pick((10 * draw.rng.randint(2, 15), 50 * draw.rng.randint(1, most)))


def _step(draw: Draw, tongue: str, body: Body) -> phrases.Step:
    """One step with a slot left for a word of politeness."""
    kind = draw.rng.random()
    if kind < 0.55:
        skill = draw.pick(body.moves)
        phrasing = _one(draw, _MOVES[tongue][skill])
        verb = {"de": ("flieg", "fliege", "geh") if body is FLYING else ("fahr", "fahre", "roll"),
                "nl": ("vlieg", "ga") if body is FLYING else ("rijd", "ga")}  # fmt: skip
        size = draw.value(phrasing, lambda: _some_size(draw, skill))
        text = phrasing.format(v=draw.pick(verb.get(tongue, ("",))), d="{d}",
                               n=_length(draw, tongue, size))  # fmt: skip
        return text, f"{skill}({size})"
    if kind < 0.8:
        skill = draw.pick(("tc", "tu", "half"))
        phrasing = _one(draw, _TURNS[tongue][skill])
        if skill == "half":
            return phrasing, "tc(180)"
        degrees = draw.value(phrasing, lambda: draw.pick((30, 45, 45, 60, 90, 90, 120, 180)))
        return phrasing.format(a=degrees, d="{d}"), f"{skill}({degrees})"
    if body is not FLYING:
        return _one(draw, _TURNS[tongue]["half"]), "tc(180)"
    if kind < 0.9:
        return _one(draw, _PICTURES[tongue]), "tp()"
    seconds = draw.value(_WAITS[tongue], lambda: draw.rng.randint(2, 10))
    return _WAITS[tongue].format(s=seconds, d="{d}"), f"d({seconds})"


def steps(draw: Draw, body: Body = FLYING) -> Pair:
    """One to three moves, turns, waits or pictures."""
    tongue = draw.pick(tuple(_MOVES))
    parts = [_step(draw, tongue, body) for _ in range(draw.pick((1, 1, 2, 2, 3)))]
    polite = draw.rng.randrange(len(parts)) if draw.chance(0.5) else -1
    texts = [text.format(d=_PLEASE[tongue] if index == polite else "").strip()
             for index, (text, _) in enumerate(parts)]  # fmt: skip
    core = texts[0]
    for text in texts[1:]:
        core += _one(draw, _THEN[tongue]) + text
    core = " ".join(core.replace(" ,", ",").split()) + draw.pick(("", ".", "!"))
    plan = "".join(f"{call};" for _, call in parts)
    return finish(draw, "language", core, plan, random_scene(draw), "L")


def things(draw: Draw, scan: str = "s", goto: str = "g") -> Pair:
    """Of a drone: an object looked for, gone to or asked for."""
    tongue = draw.pick(_SPOKEN)
    phrasing = _one(draw, draw.pick((_SEE, _GO, _FIND))[tongue])
    name = draw.value(phrasing, lambda: draw.pick(_NAMES))
    core = phrasing.format(x=_spoken(_THINGS[name], tongue))
    if phrasing in _SEE[tongue].split("|"):
        plan = f"?iv('{name}')->{{l('Yes');->True}}l('No');->False"
    elif phrasing in _GO[tongue].split("|"):
        plan = f"?{scan}('{name}')==True{{{goto}('{name}')}}->False;"
    else:
        plan = f"->{scan}('{name}')"
    scene = scene_of(draw, [name]) if draw.chance(0.6) else random_scene(draw, (name,))
    return finish(draw, "language", core, plan, scene, "L")


def _spoken(texts: str, tongue: str) -> str:
    return texts.split("|")[_SPOKEN.index(tongue)]


def places(draw: Draw) -> Pair:
    """Of an arm: an object picked up, perhaps held, or put somewhere."""
    tongue = draw.pick(_SPOKEN)
    putting = draw.chance(0.55)
    phrasing = _one(draw, (_PLACE if putting else _PICK)[tongue])
    name = draw.value(phrasing, lambda: draw.pick(_SMALL))
    thing = _spoken(_THINGS[name], tongue)
    target = draw.pick([each for each in _TARGETS if each != name])
    plan = f"?sc('{name}')==True{{gt('{name}');pi('{name}');"
    names = [name]
    if putting:
        core = phrasing.format(x=thing, y=_spoken(_TARGETS[target], tongue))
        plan += f"?sc('{target}')==True{{gt('{target}');dr();}};}}"
        names.append(target)
    else:
        core = phrasing.format(x=thing)
        if draw.chance(0.4):
            seconds = draw.rng.randint(2, 9)
            core += _HOLD[tongue].format(s=seconds)
            plan += f"d({seconds});"
        plan += "}"
    core += draw.pick(("", ".", f", {_PLEASE[tongue]}", f" {_PLEASE[tongue]}!"))
    scene = scene_of(draw, names) if draw.chance(0.8) else random_scene(draw, names)
    return finish(draw, "language", core, plan, scene, "L")
