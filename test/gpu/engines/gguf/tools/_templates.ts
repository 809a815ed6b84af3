/** Short chat templates in the style of each model family, with what the engine detects in them. */

const turns =
  "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' + (m.content or '') }}" +
  "{%- for c in m.tool_calls or [] %}{{- '\\n<tool_call>\\n' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) + '\\n</tool_call>' }}{%- endfor %}" +
  "{{- '<|im_end|>\\n' }}{%- endfor %}"

export const templates = {
  /** Tools and calls between tags, arguments as objects. */
  hermes:
    "{%- if tools %}{{- '<|im_start|>system\\n<tools>' }}{%- for t in tools %}{{- '\\n' + (t | tojson) }}{%- endfor %}{{- '\\n</tools><|im_end|>\\n' }}{%- endif %}" +
    `${turns}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`,
  /** The same, with reasoning unless disabled. It fails on a message without content. */
  qwen3:
    "{%- if tools %}{{- '<tools>' + (tools | tojson) + '</tools>' }}{%- endif %}" +
    "{%- for m in messages %}{%- if '</think>' in m.content %}{{- '(thoughts left out)' }}{%- endif %}{%- endfor %}" +
    `${turns}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}` +
    "{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}",
  /** Always reasons: the prompt opens the reasoning. */
  thinker:
    "{%- for m in messages %}{{- '<|' + m.role + '|>' + (m.content or '').split('</think>')[-1] }}{%- endfor %}" +
    "{%- if add_generation_prompt %}{{- '<|assistant|><think>\\n' }}{%- endif %}",
  /** One call per message; refuses a message with more. */
  llama:
    '{%- if tools %}{{- \'Environment: ipython\\nAnswer with {"name": function, "parameters": its arguments}.\\n\' + (tools | tojson) }}{%- endif %}' +
    "{%- for m in messages %}{%- if 'tool_calls' in m %}{%- if m.tool_calls | length != 1 %}{{ raise_exception('One call only.') }}{%- endif %}" +
    '{{- \'<|start_header_id|>assistant<|end_header_id|>{"name": "\' + m.tool_calls[0].function.name + \'", "parameters": \' + (m.tool_calls[0].function.arguments | tojson) + \'}\' }}' +
    "{%- else %}{{- '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>' + m.content }}{%- endif %}{{- '<|eot_id|>' }}{%- endfor %}" +
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}",
  /** A list of calls, whose ids have nine characters. */
  mistral:
    "{{- bos_token }}{%- for m in messages %}{%- if m.role == 'user' %}{%- if tools and loop.last %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}{{- '[INST]' + m.content + '[/INST]' }}" +
    "{%- elif m.tool_calls is defined %}{{- '[TOOL_CALLS][' }}{%- for c in m.tool_calls %}{%- if c.id | length != 9 %}{{ raise_exception('Ids have nine characters.') }}{%- endif %}" +
    "{{- '{\"name\": \"' + c.function.name + '\", \"arguments\": ' + (c.function.arguments | tojson) + ', \"id\": \"' + c.id + '\"}' + ('' if loop.last else ', ') }}{%- endfor %}{{- ']' + eos_token }}" +
    "{%- elif m.role == 'tool' %}{%- if m.tool_call_id | length != 9 %}{{ raise_exception('Ids have nine characters.') }}{%- endif %}{{- '[TOOL_RESULTS]' + m.tool_call_id + ':' + m.content + '[/TOOL_RESULTS]' }}" +
    '{%- else %}{{- m.content + eos_token }}{%- endif %}{%- endfor %}',
  /** Names and arguments after their own marks, arguments unchanged. */
  mistralNamed:
    "{{- bos_token }}{%- if tools %}{{- '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{%- endif %}" +
    "{%- for m in messages %}{%- if m.tool_calls is defined %}{%- for c in m.tool_calls %}{{- '[TOOL_CALLS]' + c.function.name + '[ARGS]' + c.function.arguments }}{%- endfor %}{{- eos_token }}" +
    "{%- elif m.role == 'tool' %}{{- '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}{%- elif m.role == 'user' %}{{- '[INST]' + m.content + '[/INST]' }}{%- else %}{{- m.content }}{%- endif %}{%- endfor %}",
  /** Supports no tools and no system message, and only alternating roles. */
  strict:
    "{%- for m in messages %}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Turns must alternate.') }}{%- endif %}" +
    "{{- '<start_of_turn>' + m.role + '\\n' + m.content + '<end_of_turn>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<start_of_turn>model\\n' }}{%- endif %}",
} as const
