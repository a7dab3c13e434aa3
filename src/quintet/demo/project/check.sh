#!/bin/sh
# The scenario: every title in titles.txt must become the slug beside it.
wrong=0
while IFS='|' read -r title slug; do
    got=$(python3 slug.py "$title") || got="(slug.py failed)"
    if [ "$got" = "$slug" ]; then
        echo "ok     '$title' -> $got"
    else
        echo "WRONG  '$title' -> $got, expected $slug"
        wrong=$((wrong + 1))
    fi
done < titles.txt
echo "$wrong wrong"
[ "$wrong" -eq 0 ]
