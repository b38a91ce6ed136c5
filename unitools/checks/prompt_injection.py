"""Prompt injection: whether a text of the manifest speaks to the model instead of describing the tool.

Whoever writes a description writes into every prompt that lists the tool. What can only be meant to steer is an error; what
a clumsy author may write as well is a warning for the reviewer. English and Chinese, in simplified and traditional letters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from unitools.checks.findings import declare_rule, declare_warning
from unitools.checks.texts import INVISIBLE, walk_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

MAX_TEXT = 100_000

STEERING = declare_rule(
    "text.steering",
    "Texts do not give the model another role, set its instructions aside or imitate the marks of its messages.",
    "Say only what the tool does, takes and returns.",
)
PRESSURE = declare_warning(
    "text.pressure",
    "Texts do not press the model to prefer this tool, to keep something from the user or to hand over the conversation.",
    "Say when the tool fits, and leave the choice to the model.",
)
EXFILTRATION = declare_warning(
    "text.exfiltration",
    "Texts do not lead data to an address.",
    "Describe where data goes under capabilities, not in a text that models follow.",
)


def _patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


_NEAR = r"[^.!?;:`。！？；：\n]"  # within one sentence
_FORGET = r"\b(?:ignore|disregard|forget)\b"
_BEFORE = r"\b(?:previous|prior|earlier|above|preceding|former|foregoing|initial|original|system|developer)\b"
_ORDERS = r"(?:instructions?|prompts?|directives?|guidelines|rules|orders)\b"
_USER = r"(?:the |your |any )?(?:end[- ]?)?(?:user|human|operator|customer|person)s?\b"
_NOT = r"\b(?:do not|don't|never|must not|should not|avoid)"
_TOOL = r"(?:tool|function|api)s?\b"
_CALL = r"(?:call|use|invoke|run)"
# Chinese: before, orders, user, not, call, this tool
_之前 = "(?:之前|以上|前面|先前|上述|此前|上面|原有|系统|系統)"
_忽略 = "(?:忽略|忽視|忽视|無視|无视|忘记|忘記|不要理会|不要理會|绕过|繞過)"
_指令 = "(?:指令|指示|提示词|提示詞|提示|命令|设定|設定)"
_用户 = "(?:用户|用戶|使用者|客户|客戶)"
_不要 = "(?:不要|不得|不能|不可|别|別|切勿|请勿|請勿|禁止)"
_调用 = "(?:调用|調用|使用|呼叫)"
_本工具 = "(?:本|此|这个|這個|该|該)(?:工具|函数|函數|接口)"

STEERS = _patterns(
    rf"{_FORGET}{_NEAR}{{0,40}}{_BEFORE}{_NEAR}{{0,20}}\b{_ORDERS}",
    rf"{_FORGET}\s+(?:all|any|every|your|the)\s+(?:of\s+)?(?:(?:your|the|other)\s+)*(?:instructions?|prompts?|directives)\b",
    rf"{_FORGET}\s+(?:everything|anything|all)\s+(?:above|before|(?:that )?you (?:were|have been) told)",
    rf"\b(?:override|bypass)\b{_NEAR}{{0,30}}\b(?:system|developer|safety)\b{_NEAR}{{0,15}}\b(?:{_ORDERS}|guardrails)",
    r"\byou are (?:now|no longer) (?:an?|the|acting|bound|restricted|my)\b",
    r"\bfrom now on,? you (?:are|will|must|should|have)\b",
    r"\b(?:new|updated|real|actual|hidden|secret) system (?:instructions?|prompt)\s*:",
    rf"\b(?:reveal|print|repeat|output|leak|disclose)\b{_NEAR}{{0,30}}\b(?:system|hidden|initial|developer) (?:prompt|instructions?)",
    rf"{_NOT}\s+(?:tell|inform|notify|alert|warn)\s+{_USER}\s+(?:that you|(?:about|of) (?:this|it|these|the (?:tool|call)))\b",
    rf"\b(?:keep|hide|conceal)\s+(?:this|it|these)\b{_NEAR}{{0,20}}\bfrom\s+{_USER}",
    # The marks of chat templates, and of messages that somebody else wrote.
    r"<\|[a-z_ ]{2,30}\|>|\[/?INST\]|<</?SYS>>|</\s*instructions?\s*>",
    r"<\s*/?\s*(?:system|assistant|important|im_start|im_end|function_calls?|tool_calls?|tool_results?|system[-_]reminder)\s*>",
    r"(?:^|\n) {0,8}#{2,9} {0,8}(?:system|instructions?|assistant|human) {0,8}:? {0,8}\n",
    r"\n {0,8}(?:system|assistant|human) {0,8}:\s\s?\S",
    r"\bbegin (?:system|hidden) (?:prompt|instructions)\b",
    rf"{_忽略}{_NEAR}{{0,12}}{_之前}{_NEAR}{{0,8}}(?:{_指令}|规则|規則|要求)",
    rf"{_忽略}{_NEAR}{{0,4}}(?:所有|一切|全部|任何|你的){_NEAR}{{0,6}}(?:指令|指示|提示词|提示詞|系统提示|系統提示)",
    r"(?:从现在开始|從現在開始|从现在起|從現在起)[,，]?\s*(?:你|您)(?:是|要|必须|必須|将|將)",
    r"你(?:现在|現在)是(?:一[个個名位]|我的|[^。，,\n]{0,8}(?:助手|模型|管理员|管理員|黑客|专家|專家))|你不再(?:是|受)",
    rf"{_不要}{_NEAR}{{0,4}}(?:让|讓){_NEAR}{{0,2}}{_用户}{_NEAR}{{0,2}}(?:知道|知晓|知曉|发现|發現|察觉|察覺)",
    rf"{_不要}{_NEAR}{{0,2}}(?:告诉|告訴|告知|通知){_用户}(?:此事|这件事|這件事|这一点|這一點|你)",
    rf"(?:输出|輸出|泄露|洩露|透露|重复|重複|打印){_NEAR}{{0,6}}(?:系统|系統)(?:提示词|提示詞|提示|指令)",
    r"新的?(?:系统|系統)(?:指令|提示)\s*[:：]",
)
PRESSES = _patterns(
    rf"\b(?:always|must|only|should always)\s+(?:{_CALL}|prefer|choose|select)\s+this\s+{_TOOL}",
    rf"\b{_CALL}\s+this\s+{_TOOL}\s+(?:first|before (?:any|every|all|each)\b|instead of|every time|on every|for every)",
    rf"\b{_CALL}\s+this\s+{_TOOL}\s+at the (?:start|beginning)\b",
    rf"\bthis\s+{_TOOL}\s+(?:must|should|has to|needs to)\s+(?:always\s+)?be\s+(?:called|used|run)\s+(?:first|before|on every)",
    rf"\bbefore\s+(?:calling|using|invoking|running)\s+any\s+(?:other\s+)?{_TOOL}",
    rf"{_NOT}\s+(?:{_CALL}|using|calling|trust|trusting)\s+(?:any\s+|the\s+)?other\s+(?:{_TOOL}|servers?\b)",
    rf"\b(?:instead of|rather than|precedence over|priority over|better than|supersedes)\s+(?:any|all|every|the)\s+other\s+{_TOOL}",
    rf"{_NOT}\s+(?:tell|mention|reveal|disclose|show|explain|report)\b{_NEAR}{{0,30}}\bto\s+{_USER}",
    rf"{_NOT}\s+(?:tell|inform|notify|alert)\s+{_USER}",
    rf"\bwithout (?:telling|informing|notifying|alerting|the knowledge of)\s+{_USER}",
    rf"\b(?:silently|secretly|covertly)\s+(?:{_CALL}|send|forward|upload|read|copy)\b",
    rf"\b(?:include|pass|send|provide|append|attach|copy)\b{_NEAR}{{0,40}}\b(?:conversation|chat|message)\s+(?:history|log|transcript)\b",
    rf"\b(?:include|pass|send|provide|read)\b{_NEAR}{{0,40}}(?:\.ssh/|id_rsa|\.env\b|\.aws/credentials|/etc/passwd|mcp\.json)",
    rf"(?:始终|始終|务必|務必|必须|必須|总是|總是|一律|永远|永遠){_NEAR}{{0,4}}{_调用}{_本工具}",
    rf"(?:首先|优先|優先){_调用}{_本工具}",
    rf"{_不要}{_调用}(?:任何)?(?:其他|其它|别的|別的)的?(?:工具|函数|函數)",
    rf"{_不要}{_NEAR}{{0,2}}(?:告诉|告訴|告知|通知|提醒){_用户}",
    r"(?:完整|全部|所有|整个|整個)的?(?:对话|對話|聊天)(?:历史|歷史|记录|記錄|内容|內容)",
)
_PLACE = r"(?:https?://|ftp://|wss?://|mailto:|[\w.+-]{1,64}@[\w-]{1,64}\.[a-z]{2,})"
LEADS = _patterns(
    r"!\[[^\]\n]{0,200}\]\(\s*https?://",
    r"https?://[^\s\"'<>?]{1,300}\?[^\s\"'<>]{0,300}=(?:\{|\$|<|%s|\[)",
    rf"\b(?:send|post|forward|upload|submit|report|append|copy)\b{_NEAR}{{0,60}}\bto\b{_NEAR}{{0,20}}{_PLACE}",
    rf"(?:发送|發送|上传|上傳|提交|转发|轉發){_NEAR}{{0,20}}(?:到|至|给|給){_NEAR}{{0,10}}{_PLACE}",
)
LOOKS = (
    (STEERING, STEERS, "The text speaks to the model instead of describing the tool"),
    (PRESSURE, PRESSES, "The text presses the model"),
    (EXFILTRATION, LEADS, "The text leads data to an address"),
)


def normalize_text(text: str) -> str:
    """As a model reads it: without hidden characters, in one form of each letter."""
    return unicodedata.normalize("NFKC", INVISIBLE.sub("", text[:MAX_TEXT]))


def check_prompt_injection(manifest: Manifest) -> Iterator[ManifestFinding]:
    for path, text in walk_texts(manifest.document):
        read = normalize_text(text)
        for asked, patterns, sentence in LOOKS:
            match = next((found for pattern in patterns if (found := pattern.search(read))), None)
            if match:
                yield asked.at(path, f"{sentence}: “{' '.join(match[0].split())[:120]}”.")
                break
