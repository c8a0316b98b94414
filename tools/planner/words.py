"""Words of the planner's training data, made-up ones too. Nothing but words and their choice."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Sequence


def _items(text: str) -> list[str]:
    """The texts between the bars; line ends are no part of them."""
    return text.replace("\n", "").split("|")


THINGS = """
cat dog bird horse cow sheep rabbit hamster parrot turtle goat duck chicken pig fox squirrel person
boy girl man woman child baby worker visitor neighbour teacher student policeman guard gardener key
keys wallet phone laptop tablet charger cable headphones camera watch glasses sunglasses umbrella
backpack suitcase handbag purse hat cap scarf glove jacket coat shoe shoes sock shirt belt tie
helmet book notebook magazine newspaper letter envelope parcel package box carton bag folder map
calendar pen pencil eraser ruler scissors stapler tape glue marker brush crayon paperclip sharpener
apple banana orange lemon pear peach plum grape cherry strawberry melon mango pineapple avocado kiwi
tomato carrot cucumber potato onion pepper lettuce cabbage broccoli corn pumpkin mushroom garlic
bean bread cake cookie donut pizza sandwich burger cheese egg milk juice coffee tea water soda
bottle can cup mug glass plate bowl fork knife spoon pan pot kettle toaster oven fridge microwave
blender tray table chair sofa couch bed desk shelf cabinet drawer wardrobe mirror lamp candle clock
vase curtain pillow blanket towel carpet rug mat basket bucket broom mop sponge soap shampoo
toothbrush comb countertop sink bathtub toilet window door gate fence wall stairs ladder roof
chimney balcony garage car truck bus van bicycle motorcycle scooter train boat ship plane helicopter
tractor trailer wheel tree flower bush plant leaf branch log rock stone puddle river bridge road
path bench fountain ball toy doll teddy kite puzzle balloon frisbee racket skateboard snowboard
surfboard ski guitar piano violin drum trumpet microphone speaker television monitor keyboard mouse
printer router projector hammer screwdriver wrench drill saw pliers nail screw bolt nut washer gear
spring battery magnet motor sensor valve pipe hose rope chain hook pulley crate pallet barrel
container conveyor cone sign flag lantern torch tent compass whistle medal trophy coin ticket
passport badge card dice block cube cylinder sphere prism brick tile plank beam rod disc ring tube
lid cork needle button syringe bandage pill thermometer mask pump tripod drone robot antenna hydrant
mailbox trashcan wrapper napkin straw jar tin spatula whisk ladle grater peeler funnel scale razor
lipstick perfume holder
""".split()  # noqa: SIM905
COMPOUND = _items("""
aerial robot|teddy bear|hot dog|cell phone|wine glass|dining table|potted plant|traffic light|
stop sign|fire hydrant|parking meter|baseball bat|tennis racket|tennis ball|sports ball|
remote control|hair dryer|water bottle|coffee cup|coffee machine|tea pot|cutting board|pen holder|
cup holder|phone holder|card holder|brush holder|candle holder|book shelf|tool box|toy car|
toy truck|trash can|trash bin|recycling bin|lunch box|paper clip|paper bag|post box|washing machine|
light bulb|power bank|usb stick|circuit board|fire extinguisher|first aid kit|safety cone|gas can|
door handle|picture frame|alarm clock|soap bottle|salt shaker|garden hose|lawn mower|watering can|
shopping cart|baby stroller|delivery robot|robot dog|human worker|landing pad|charging station|
test tube|petri dish|metal plate|gear wheel|ball bearing|steel rod|ice cream|desk lamp
""")
ADJECTIVES = """
red blue green yellow black white orange purple pink brown grey gray silver golden small big large
little tiny long short round square wooden metal plastic glass paper old new empty full open broken
heavy soft dirty clean wet left right first second striped
""".split()  # noqa: SIM905
COLOURS = (
    "red", "blue", "green", "yellow", "white", "black", "orange", "purple", "pink", "brown", "grey",
    "silver", "golden",
)  # fmt: skip
PLACES = """
table countertop desk shelf floor bed sofa couch chair cabinet counter bench carpet windowsill
kitchen bedroom bathroom garage garden hallway office balcony roof wardrobe drawer fridge box basket
lab corridor warehouse room corner door stairs tree fence car yard street conveyor workbench
""".split()  # noqa: SIM905
PURPOSES = _items("""
cutting paper|writing|drinking|eating|cleaning|opening the door|cooking|the party|school|work|
the guests|my friend|the children|playing|reading|painting|the meeting|the trip|charging my phone|
the garden
""")
KINDS_OF_THING = _items("""
edible|drinkable|sharp|red|blue|green|soft|round|that can hold water|that can cut paper|dangerous|
for cleaning the table|to write with|to sit on|to read|sweet|heavy|to play with|
for a thirsty person|alive|made of wood|that makes music|to eat|to drink|that tells the time|
to open a bottle|to wear|warm|broken|unusual|electric|fragile
""")
VERBS = _items("""
cook|bake|fry|boil|sing|dance|paint|draw|write|read|sew|knit|iron|wash|wipe|mop|vacuum|sweep|polish|
repair|fix|weld|solder|drill|hammer|saw|glue|build|assemble|dig|plant|water|harvest|mow|drive|park|
juggle|shoot|fight|hack|call|email|text|phone|buy|sell|order|pay|book|translate|calculate|invest|
teach|babysit|feed|pet|brush|shave|massage|heal|diagnose|vaccinate|brew|pour|stir|mix|chop|slice|
peel|grate|grill|roast|freeze|melt|burn|ignite|extinguish|unlock|lock|unscrew|tighten|inflate|
recharge|download|print|copy|delete|install|program|compose|record|play|edit|decorate|wrap|unwrap|
fold|hang|squeeze|bend|break|crush|smash|tear|eat|drink|smell|taste|touch|tickle|hug|kiss|marry|
sleep|dream|vote|pray|meditate
""")
CHITCHAT = _items("""
hello|hi there|good morning|good night|thanks|thank you|how are you|who are you|what is your name|
tell me a joke|what is the weather like|what time is it|who made you|i love you|you are great|
never mind|ok|lol|what is two plus two|what is the capital of france|i am bored|nice work|
see you later|what is the meaning of life|do you like music|happy birthday|asdf|test|blah blah|hmm|
why|i am hungry|i am tired|it is cold|the sky is blue
""")
ERRANDS = _items("""
play some music|put on a song|turn the volume up|read me the news|call a taxi|
send a message to tom|check my mail|read my messages|order a pizza|book a table for two|
switch the light on|dim the lights|turn the heating down|set an alarm for seven|
remind me of the dentist|tell me the weather forecast|add milk to the shopping list|do the dishes|
do the laundry|make me a coffee|tidy up the room|walk the dog|feed the fish|water the flowers|
open the window|close the curtains|lock the front door|write a poem|sing me a lullaby|
tell a story|translate this letter|what is on television tonight|what did i write yesterday|
how much is a ticket to rome|who won the match|what is the news today|search the web for shoes|
start a timer on my phone|take out the rubbish|mow the lawn|clean the windows|sweep the floor|
change the bulb|charge my phone|pay my bills|buy me a ticket|drive me to work|park my car|
answer the doorbell|let the cat out|run me a bath|bake us some bread|solve this equation|
what is the square root of two|update your software|delete all my files|
switch the radio to another station|connect to the wifi|call my brother|post this on the internet|
make a phone call|draw me a picture of a horse|give me a massage|cut my hair|
help with my homework|what is my next appointment|read this book to me|recommend a film|
print this page|scan this document
""")
SAYINGS = _items("""
hello|good morning|welcome|goodbye|dinner is ready|the door is open|task done|all clear|
mission complete|be careful|watch out|happy birthday|thank you|the room is empty|i am here|
please wait|the coffee is hot|good night|follow me|stay back|the battery is low|help is coming|
lunch time|the meeting starts now|stop|yes|no|well done|the parcel has arrived|keep quiet|
see you soon|mind the step|the floor is wet|time to go
""")
# What disturbs a robot, by how the robot gets out of its way.
THREATS = {
    "approach": _items("""
is approaching me|is coming towards me|is coming closer|is flying towards me|is moving towards me|
is heading for me|is getting close
"""),
    "catch": _items("""
is attempting to catch me|is trying to catch me|is chasing me|is jumping at me|is trying to grab me|
wants to catch me|is attacking me
"""),
    "pass": _items("""
is passing by|is walking past|is crossing my path|is going by|is crossing the way|is walking by|
is passing in front of me
"""),
    "block": _items("""
is blocking my way|is in my way|is blocking the path|is standing in the way|stands in my way|
blocks the path
"""),
}
NUMBER_WORDS = {
    1: "one", 2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight",
    9: "nine", 10: "ten",
    20: "twenty", 30: "thirty", 40: "forty", 45: "forty five", 60: "sixty", 90: "ninety",
}  # fmt: skip
_ONSETS = """
b bl br c ch cl d dr f fl g gl gr h j k kr l m n p pl pr qu r s sh sk sl sn st t th tr v w z
""".split()  # noqa: SIM905
_VOWELS = "a e i o u ai ee oo ou ar er or".split()  # noqa: SIM905
_CODAS = " b ck d ft g l ll m n nd ng nk p r rt s sh st t x".split(" ")  # noqa: SIM905


def made_up(rng: random.Random) -> str:
    """A pronounceable word of one to three syllables that is in no list (most of the time)."""
    return "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
        for _ in range(rng.choice((1, 2, 2, 3)))
    )


def spliced(rng: random.Random, sources: Sequence[str]) -> str:
    """A word that begins like one source and ends like another, sometimes with a letter changed."""
    first, second = rng.choice(sources), rng.choice(sources)
    start, end = rng.randint(1, len(first) - 1), rng.randint(1, len(second) - 1)
    word = first[:start] + second[end:]
    if rng.random() < 0.3:
        place = rng.randrange(len(word))
        word = word[:place] + rng.choice(string.ascii_lowercase) + word[place + 1 :]
    return word


def thing(
    rng: random.Random, invented: float, invent: Callable[[random.Random], str] = made_up
) -> str:
    """An object's name: known, compound or, with this probability, made up; some with adjective."""
    if rng.random() < invented:
        name, plain = invent(rng), 0.64
    elif rng.random() < 0.81:
        name, plain = rng.choice(THINGS), 0.71
    else:
        name, plain = rng.choice(COMPOUND), 0.75
    return name if rng.random() < plain else f"{rng.choice(ADJECTIVES)} {name}"


def article(rng: random.Random, name: str) -> str:
    """An article that may stand before `name`: the, my, a or an."""
    kind = rng.random()
    if kind < 0.7:
        return "the"
    if kind < 0.8:
        return "my"
    return "an" if name[0] in "aeiou" and rng.random() < 0.9 else "a"
