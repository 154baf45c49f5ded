"""What the signature vectors are made from: intents, and JSON texts that are accepted or refused."""

from typing import Any, Final

from soundmark.kit.crypto.canonical import DEPTH_MAX, SIZE_MAX_BYTES


def nested(levels: int) -> str:
    """Return a JSON text of nested objects, `levels` deep."""
    return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)


def _deep_resource(levels: int) -> dict[str, Any]:
    resource: dict[str, Any] = {"end": True}
    for _ in range(levels - 1):
        resource = {"next": resource}
    return resource


def _sized(size_bytes: int) -> str:
    return '{"text":"' + "x" * (size_bytes - len('{"text":""}')) + '"}'


INTENTS: Final[dict[str, dict[str, Any]]] = {
    "texts of many scripts, and every kind of escape": {
        "type": "текст",
        "action": "表示する",
        "resource": {
            "title": "Grüße, مرحبا, שלום, हिन्दी, e\u0301 and é are not the same",
            "emoji": "😀👩‍🚀",
            "escapes": 'quote " backslash \\ slash / newline \n tab \t bell \x07 delete \x7f line \u2028',
            "": "the empty name",
            "\u20ac": "sorts before the next two, which sort by UTF-16 code units",
            "\U0001f600": "D83D DE00",
            "\ufb33": "FB33",
        },
    },
    "numbers of every form": {
        "type": "data",
        "action": "read",
        "resource": {
            "n": [0, -1, 4.5, 0.002, 1e-7, 1e-6, 1e21, 1e30, 5e-324, 1.7976931348623157e308, 9007199254740991, -0.1]
        },
    },
    "an intent as deep as one may be": {"type": "data", "action": "read", "resource": _deep_resource(DEPTH_MAX - 1)},
    "an empty resource": {"type": "x", "action": "y", "resource": {}},
}

# The sample of RFC 8785, section 3.2.2, as it stands there but for its line breaks.
_RFC_SAMPLE: Final = (
    '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
    ' "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", "literals": [null, true, false]}'
)
# The sample of RFC 8785, section 3.2.3.
_RFC_ORDER: Final = (
    '{"\\u20ac": "Euro Sign", "\\r": "Carriage Return", "\\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",'
    ' "\\ud83d\\ude00": "Emoji: Grinning Face", "\\u0080": "Control", "\\u00f6": "Latin Small Letter O With Diaeresis"}'
)

ACCEPTED: Final[dict[str, str]] = {
    "RFC 8785, section 3.2.2: numbers, strings, literals": _RFC_SAMPLE,
    "RFC 8785, section 3.2.3: names sort by UTF-16 code units": _RFC_ORDER,
    "names beyond the BMP sort before those from U+E000 on": '{"\\uffff":1,"\\ud83d\\ude00":2,"\\ue000":3,"z":4}',
    "names sort at every level": '{"b":[{"d":1,"c":2}],"a":{"z":1,"y":2}}',
    "a name that begins another sorts first": '{"aa":1,"a":2,"":3,"a b":4}',
    "white space goes": ' {\t"a" :\r\n[ 1 , 2 ] } \n',
    "escapes that have a short form": '"\\u0008\\u0009\\u000a\\u000c\\u000d\\u0022\\u005c"',
    "control characters without one": '"\\u0000\\u0001\\u001f\\u001F"',
    "everything else is written as itself": '"\\u007f\\u0080\\u2028\\u2029\\u00e9\\ud83d\\ude00\\/"',
    "texts are not normalised": '["\\u00e9","e\\u0301"]',
    "no value is an object only": "[]",
    "a text alone": '"text"',
    "null": "null",
    "minus zero is zero": "[-0,-0.0,-0e5]",
    "a whole number written with a fraction or an exponent": "[1.0,10.50e1,1E2,-3.000,0.1e1]",
    "underflow is zero": "[1e-400,-1e-400]",
    "the largest integers": "[9007199254740991,-9007199254740991,9007199254740991.0]",
    "from 1e21 on the canonical form has an exponent": "[1e21,1E30,-1e21,1000000000000000000000.0]",
    "RFC 8785, appendix B: the smallest and the largest": (
        "[5e-324,-5e-324,1.7976931348623157e308,-1.7976931348623157e308]"
    ),
    "RFC 8785, appendix B: neighbours of 1e23": "[9.999999999999997e22,1e23,1.0000000000000001e23]",
    "RFC 8785, appendix B: neighbours of 1e-6": "[9.999999999999997e-7,0.000001,1e-7]",
    "RFC 8785, appendix B: neighbours of a third": (
        "[333333333.3333332,333333333.33333325,333333333.3333333,333333333.3333334,333333333.33333343]"
    ),
    "RFC 8785, appendix B: small and half-way": "[-0.0000033333333333333333,1424953923781206.2]",
    f"{DEPTH_MAX} levels of objects": nested(DEPTH_MAX),
    f"{DEPTH_MAX} levels of arrays": "[" * DEPTH_MAX + "]" * DEPTH_MAX,
    "values that are no container add no level": nested(DEPTH_MAX).replace("{}", '{"b":1}'),
    f"exactly {SIZE_MAX_BYTES} bytes": _sized(SIZE_MAX_BYTES),
    "the size is that of the canonical form": " " * 20_000 + '{"a":1}',
}

MALFORMED: Final[dict[str, str]] = {
    "an empty text": "",
    "white space only": " \n",
    "a byte order mark": '\ufeff{"a":1}',
    "an object that stays open": '{"a":1',
    "an array that stays open": "[1",
    "two values": '{"a":1}{"b":2}',
    "a comma too many": '{"a":1,}',
    "a comma too many in an array": "[1,]",
    "a name without quotes": "{a:1}",
    "single quotes": "{'a':1}",
    "a comment": '{"a":1/*no*/}',
    "a leading zero": "[01]",
    "a plus sign": "[+1]",
    "a fraction without digits": "[1.]",
    "no digit before the fraction": "[.5]",
    "hexadecimal": "[0x10]",
    "True": "[True]",
    "NaN": "[NaN]",
    "Infinity": "[Infinity]",
    "-Infinity": "[-Infinity]",
    "a raw line break in a text": '"a\nb"',
    "a raw NUL in a text": '"a\x00b"',
    "an escape that is none": '"\\x41"',
    "a name twice": '{"a":1,"a":1}',
    "a name twice, once escaped": '{"a":1,"\\u0061":2}',
    "a name twice, far down": '{"x":[{"y":{"a":1,"b":2,"a":3}}]}',
    "a high surrogate alone": '"\\ud800"',
    "a low surrogate alone": '"\\udc00"',
    "surrogates in the wrong order": '"\\udc00\\ud800"',
    "a surrogate alone in a name": '{"\\ud800":1}',
}

NOT_CANONICAL: Final[dict[str, str]] = {
    "2^53": "[9007199254740992]",
    "-2^53": "[-9007199254740992]",
    "2^53 written as a float": "[9007199254740992.0]",
    "1e16": "[1e16]",
    "1e20, whose canonical form would be an integer": "[1e20]",
    "-1e20": "[-1e20]",
    "RFC 8785, appendix B: about 2^68": "[295147905179352830000.0]",
    "the last double below 1e21": "[999999999999999900000.0]",
    "10^21 written as an integer": "[1000000000000000000000]",
    "an integer of 400 digits": "[" + "9" * 400 + "]",
    "1e400": "[1e400]",
    "-1e400": "[-1e400]",
    "the first number that rounds to infinity": "[1.7976931348623159e308]",
    f"{DEPTH_MAX + 1} levels of objects": nested(DEPTH_MAX + 1),
    f"{DEPTH_MAX + 1} levels of arrays": "[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1),
    f"{SIZE_MAX_BYTES + 1} bytes": _sized(SIZE_MAX_BYTES + 1),
    "more bytes than characters": _sized(SIZE_MAX_BYTES - 100).replace("x" * 200, "é" * 200, 1),
}

# Texts that no JSON string can hold, in hexadecimal.
MALFORMED_BYTES: Final[dict[str, str]] = {
    "a byte that UTF-8 never has": "22ff22",
    "an overlong slash": "22c0af22",
    "a surrogate as UTF-8": "22eda08022",
    "a character cut short": "22c322",
    "UTF-16": "feff005b005d",
    "beyond U+10FFFF": "22f490808022",
}
