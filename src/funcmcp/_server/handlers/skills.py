"""`skills/list`, `skills/get` and `resources/directory/read`.

How it works: the files of skills are resources like any others, and a skill names them. A caller gets a skill if it may
use it, and if each of its files is a resource that clients see. Folders are not registered: they follow from the URIs
of the files.

Source: extension `io.modelcontextprotocol/skills`, ext-skills `specification/stable/skills.mdx`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from funcmcp._protocol import adaptation
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import InvalidParams
from funcmcp._protocol.skills import FOLDER_TYPE, folder_of
from funcmcp._server.catalog.lookup import uri_of
from funcmcp._server.handlers.lists import FeatureList, cursor_of, page_of, session_rules_of, start_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._auth.principal import Principal
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.authorization import Guard
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Skill
    from funcmcp._server.results import Results


def _entry(definition: Mapping[str, Any], _revision: Revision) -> dict[str, Any]:
    """Return an entry, which is the same in all revisions."""
    return dict(definition)


class SkillList(FeatureList):
    """The list of skills. Callers get only those that they may use, because hosts read what is listed.

    Args:
        catalog: The features.
        results: Completes the pages.
        guard: Decides which skills a caller gets; None if every caller gets all.
        page_size: The number of skills on a page; None for all of them.
    """

    def __init__(self, catalog: Catalog, *, results: Results, guard: Guard | None, page_size: int | None) -> None:
        super().__init__("skills/list", catalog.skills, _entry, results=results, guard=guard, page_size=page_size)
        self._resources = catalog.resources

    @property
    def version(self) -> int:
        """A number that grows with each change of the skills and of their files."""
        return self.registry.version + self._resources.version

    def all(self) -> list[Any]:
        """Return the skills whose files are all there."""
        return [skill for skill in self.registry if self.is_whole(skill)]

    def is_filtered(self, guard: Guard | None, principal: Principal | None) -> bool:
        """Return whether a caller's list contains only the skills that the caller may use."""
        del principal
        return guard is not None

    def is_whole(self, skill: Skill) -> bool:
        """Return whether clients see each file of a skill."""
        return all(self._resources.get(file.uri) is not None for file in skill.files)

    async def features_for(self, context: RequestContext, *, through_mounts: bool = True) -> list[Any]:
        """Return the skills that the caller of a request gets."""
        del through_mounts  # middleware of mounted servers has no lists of skills
        skills = self.with_provided(await self.allowed(self.all(), context), await self.provided_for(context))
        return [skill for skill in skills if is_seen(skill, context)]


def is_seen(skill: Skill, context: RequestContext) -> bool:
    """Return whether the rules of a session let it see each file of a skill."""
    rules = session_rules_of(context)
    return rules is None or all(rules.decide(file, default=True) for file in skill.files)


class Skills:
    """Answers for one skill, and for the folders of skills.

    Args:
        skills: The list of skills.
        results: Completes results.
    """

    def __init__(self, skills: SkillList, results: Results) -> None:
        self._skills = skills
        self._results = results

    async def get(self, context: RequestContext) -> dict[str, Any]:
        """Answer `skills/get`."""
        skill: Skill = context.routed.require_feature()
        is_registered = self._skills.registry.get(skill.uri) is skill
        if (is_registered and not self._skills.is_whole(skill)) or not is_seen(skill, context):
            raise InvalidParams(f"No skill is served at {skill.uri}", {"uri": skill.uri})
        entry = {"skill": dict(skill.describe())}
        return self._results.cacheable(entry, context.client.revision, self._results.list_ttl)

    async def read_folder(self, context: RequestContext) -> bytes:
        """Answer `resources/directory/read` with what a folder has for the caller."""
        uri, cursor = uri_of(context.request.params), cursor_of(context)
        revision = context.client.revision
        if self._skills.provided is not None:
            await self._skills.provided.ready()
        children = _children_of(uri, await self._skills.features_for(context))
        if not children:
            raise InvalidParams("This is not a folder of a skill.", {"uri": uri})
        keys = list(children)
        kind = f"folder:{uri.replace(' ', '%20')}"  # cursors have blanks between their parts
        start = 0 if cursor is None else start_of(kind, keys, cursor)
        page = page_of(kind, list(children.items()), start, self._skills.page_size)
        definitions = [encode(adaptation.definition(child, revision)) for child in page.items]
        return self._results.page("resources", definitions, page.next_cursor, revision)


def _children_of(folder: str, skills: list[Skill]) -> dict[str, Mapping[str, Any]]:
    """Return the definitions of the files and folders in a folder, by URI; none if it does not exist."""
    prefix = f"{folder}/"
    children: dict[str, Mapping[str, Any]] = {}
    if folder.endswith(("/", ":")):
        return children
    for skill in skills:
        root = f"{folder_of(skill.uri)}/"
        if not root.startswith(prefix) and not prefix.startswith(root):
            continue
        for file in skill.files:
            if not file.uri.startswith(prefix):
                continue
            name, slash, _ = file.uri.removeprefix(prefix).partition("/")
            uri = prefix + name
            if slash:
                children.setdefault(uri, {"uri": uri, "name": unquote(name), "mimeType": FOLDER_TYPE})
            else:
                children.setdefault(uri, file.describe())
    return children
