"""Tables of the console: a column is declared once, with its heading and its cell.

``{% table row in page.rows _("Grants, scrolls sideways") %}{% column _("Agent") %}{{ row.agent.name }}{% endcolumn %}…{% endtable %}``

Columns are declared in templates, not in Python: a cell is a link, a badge, a form or two lines of markup, so a declaration in Python
would be a template again, for each cell a name more. Rows stay written out where a cell spans columns or the row says something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

if TYPE_CHECKING:
    from django.template.base import FilterExpression, NodeList, Parser, Token
    from django.template.context import Context

register = template.Library()
HEADINGS = "table_headings"


class Column(template.Node):
    """Renders its heading in the table's head, and its cell in each row.

    ``classes`` are those of the cell. ``row`` makes it the heading of its row, ``num`` aligns its heading too, and the heading
    of ``acts`` and ``pick`` (a box to tick) is for screen readers only.
    """

    def __init__(self, nodelist: NodeList, heading: FilterExpression, classes: FilterExpression | None) -> None:
        self.nodelist, self.heading, self.classes = nodelist, heading, classes

    def render(self, context: Context) -> SafeString:
        names = self.classes.resolve(context).split() if self.classes else []
        if context[HEADINGS]:
            return self.render_heading(self.heading.resolve(context), names)
        tag = 'th scope="row"' if "row" in names else "td"
        classes = " ".join(name for name in names if name not in ("row", "pick"))
        opening = f'<{tag} class="{classes}">' if classes else f"<{tag}>"
        return SafeString(f"{opening}{self.nodelist.render(context)}</{tag[:2]}>")

    def render_heading(self, heading: str, names: list[str]) -> SafeString:
        if {"acts", "pick"} & set(names):
            return format_html('<th scope="col"><span class="sr-only">{}</span></th>', heading)
        return format_html('<th scope="col"{}>{}</th>', SafeString(' class="num"' if "num" in names else ""), heading)


class Table(template.Node):
    """One row for each of ``rows``. In one that is ``linked``, the link of a row fills all of it, and j and k go from row to row."""

    def __init__(
        self, nodelist: NodeList, name: str, rows: FilterExpression, label: FilterExpression, *, linked: bool
    ) -> None:
        self.nodelist, self.name, self.rows, self.label, self.linked = nodelist, name, rows, label, linked

    def render(self, context: Context) -> SafeString:
        with context.push(**{HEADINGS: True}):
            head = self.nodelist.render(context)
        with context.push(**{HEADINGS: False}):
            body = "".join(self.render_row(row, context) for row in self.rows.resolve(context))
        return format_html(
            '<div class="tblw" tabindex="0" role="region" aria-label="{}"><table class="tbl">'
            "<thead><tr>{}</tr></thead><tbody{}>{}</tbody></table></div>",
            self.label.resolve(context),
            head,
            SafeString(" data-rows" if self.linked else ""),
            SafeString(body),
        )

    def render_row(self, row: object, context: Context) -> str:
        with context.push(**{self.name: row}):
            cells = self.nodelist.render(context)
        return f'<tr class="rl">{cells}</tr>' if self.linked else f"<tr>{cells}</tr>"


@register.tag("column")
def parse_column(parser: Parser, token: Token) -> Column:
    _tag, heading, *classes = token.split_contents()
    nodelist = parser.parse(("endcolumn",))
    parser.delete_first_token()
    return Column(nodelist, parser.compile_filter(heading), parser.compile_filter(classes[0]) if classes else None)


@register.tag("table")
def parse_table(parser: Parser, token: Token) -> Table:
    """``{% table <name> in <rows> <label> [linked] %}``"""
    match token.split_contents():
        case [_, name, "in", rows, label]:
            linked = False
        case [_, name, "in", rows, label, "linked"]:
            linked = True
        case _:
            raise template.TemplateSyntaxError(
                "A table is {% table row in rows label %}, with `linked` at the end if rows are links."
            )
    nodelist = parser.parse(("endtable",))
    parser.delete_first_token()
    return Table(nodelist, name, parser.compile_filter(rows), parser.compile_filter(label), linked=linked)
