"""Plans for a fleet of robots from one local vLLM, in segments that the robots' progress resumes.

The generated interfaces (timely_llm.msg, .srv, .action) lie in another folder under the same
name: extending the path lets both halves import as one package.
"""

import pkgutil

__version__ = "0.1.0"
__path__ = pkgutil.extend_path(__path__, __name__)
