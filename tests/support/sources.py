"""What source is refused: a special function whose row has none in the language."""

import re

from symgrad.carriers.special.table import SPECIAL
from symgrad.symbolic.catalogue import WITH_PARAMETERS


def check_refused(error, language):
    """Check that an error names a special function without a source in a language."""
    word = re.search(r"(\w+) cannot be written here", str(error))[1]
    word = next((name for name, short in WITH_PARAMETERS.items() if word in short), word)
    assert word in SPECIAL.keys() - language.ops.keys(), error
