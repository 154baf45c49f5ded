"""An example of an offline pack. It verifies under the example key."""

from datetime import timedelta
from typing import Final

from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.codes.signed_facts import read_facts
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY, LATER
from soundmark.core.features.codes.offline_packs.pack import write_pack
from soundmark.wire.offline_pack import OfflinePack

_FACTS: Final = read_facts(CODE.payload)
assert _FACTS is not None, "the example Code is signed"
_RECORD: Final = PackRecord("opk_dmVudWUtd2l0aG91dC1uZX", CODE.project_id, None, LATER, LATER + timedelta(hours=6))

PACK: Final = OfflinePack.model_validate_json(write_pack(EXAMPLE_KEY, _RECORD, [_FACTS])[0])
