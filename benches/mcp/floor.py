"""Answers every line with the same bytes and the line's id: what pipes and processes cost by themselves."""

import re
import sys

answer = open(sys.argv[1], "rb").read()
head, tail = re.split(rb'"id":\d+', answer, maxsplit=1)
for line in sys.stdin.buffer:
    found = re.search(rb'"id": (\d+)', line)
    if found:
        sys.stdout.buffer.write(b'%s"id":%s%s' % (head, found[1], tail))
        sys.stdout.buffer.flush()
