"""The examples of docs/mcp.md are calls that were made. FLOW_BLESS=1 writes them anew.

The YAML blocks of the page are the workflows that the examples use. Under a heading that is a
tool's name, the first JSON block is a call's arguments and the second its answer. What differs from
call to call is written as `…`; an `…` in arguments is what the calls before gave.
"""

import json
import os
import pathlib
import re

from harness import call

PAGE = pathlib.Path(__file__).parents[2] / "docs/mcp.md"
RUN = re.compile(r"r-[0-9a-z]{18}")
SESSION = re.compile(r"t-[a-z0-9]{8}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")
VERSION = re.compile(r"\+[0-9a-f]{12}")
# Times a call took, and what a terminal shows: the prompt is the person's own.
FLEETING = {"total_elapsed_time", "elapsed_time", "duration", "screen_content", "elapsed_ms", "execution_time_ms", "avg_ms",
            "avg_transformation_time", "raw_bytes"}
MOST_ITEMS, MOST_KEYS, DEEPEST, LONGEST = 2, 30, 6, 160


def told(value, place, depth=0, key=None):
    """A value as the page tells it."""
    if value is not None and key is not None and (key in FLEETING or key.endswith("_duration")):
        return "…"
    if isinstance(value, str):
        text = value.replace(str(place.project), "/home/ann/project")
        for pattern, written in ((RUN, "r-…"), (SESSION, "t-…"), (TIME, "…"), (VERSION, "+…")):
            text = pattern.sub(written, text)
        return text if len(text) <= LONGEST else text[: LONGEST // 2] + "…"
    if isinstance(value, list):
        items = [told(item, place, depth + 1) for item in value[:MOST_ITEMS]]
        return items + ["…"] * (len(value) > MOST_ITEMS)
    if isinstance(value, dict):
        if depth >= DEEPEST or len(value) > MOST_KEYS:
            return "…"
        if key == "json_schema":
            return "…"
        return {name: told(item, place, depth + 1, name) for name, item in value.items()}
    return value


def meant(value, last):
    """Arguments with what the calls before gave."""
    if isinstance(value, dict):
        return {name: meant(item, last) for name, item in value.items()}
    if isinstance(value, list):
        return [meant(item, last) for item in value]
    return last.get(value, value) if isinstance(value, str) else value


def remember(answer, last):
    text = json.dumps(answer)
    for written, pattern in (("r-…", RUN), ("t-…", SESSION)):
        for found in pattern.findall(text)[-1:]:
            last[written] = found


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


async def the_examples_of_the_page_are_true(place):
    page = PAGE.read_text()
    blocks = list(BLOCK.finditer(page))
    for block in blocks:
        if block[1] == "yaml":
            place.workflow(re.match(r"name: (\w+)", block[2])[1], block[2])
    place.write(".flow/agents/reviewer.md", "---\ndescription: Reviews changes\n---\nYou review.\n")
    arguments = "arguments:\n  branch: {type: string, required: true}\n"
    place.write(".flow/prompts/review.md", f"---\n{arguments}---\nReview {{{{ branch }}}} against main.\n")
    last, replaced, shown, wrong = {}, [], set(), []
    async with place.connect(arguments=[]) as client:
        offered = {tool.name for tool in (await client.list_tools()).tools}
        sections = list(re.finditer(r"^### `(\w+)`$", page, re.M))
        for section, following in zip(sections, [*sections[1:], None]):
            end = following.start() if following else len(page)
            tool = section[1]
            examples = [b for b in blocks if b[1] == "json" and section.end() < b.start() < end]
            assert len(examples) >= 2, f"`{tool}` has no example"
            shown.add(tool)
            answer = await call(client, tool, meant(json.loads(examples[0][2]), last))
            remember(answer, last)
            answer = told(answer, place)
            if answer != json.loads(examples[1][2]):
                wrong.append(f"{tool}: {json.dumps(answer, ensure_ascii=False)}")
                replaced.append((examples[1], answer))
    if os.environ.get("FLOW_BLESS"):
        for block, answer in reversed(replaced):
            text = json.dumps(answer, indent=2, ensure_ascii=False)
            page = page[: block.start(2)] + text + "\n" + page[block.end(2) :]
        PAGE.write_text(page)
    else:
        assert not wrong, "\n".join(["FLOW_BLESS=1 would write:", *wrong])
    assert shown == offered, f"not described: {offered - shown}; not offered: {shown - offered}"
