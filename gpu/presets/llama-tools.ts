import { ulid } from '../../core/ids.ts'
import type { EngineCall } from '../../core/models/fleet.ts'
import type { ChatRequest } from '../../core/schemas/chat.ts'
import { openConstraints } from '../engines/gguf/chat-constraint.ts'
import { hermes } from '../engines/gguf/tools/call-form.ts'
import { inProse, introduced, toolIntroduction, withoutFunctions } from '../engines/gguf/tools/conversation.ts'
import { callingOf } from '../engines/gguf/tools/tool-choice.ts'
import type { Adapter } from './adapter.ts'
import { bodyText } from './body-text.ts'
import { callListener } from './llama-calls.ts'
import { openMediaParts } from './media-parts.ts'

const path = '/v1/chat/completions'

/** The used fields of llama-server's /props. Source: tried with v0.5.0. */
interface Props {
  chat_template_caps?: { supports_tools?: boolean; supports_tool_calls?: boolean; supports_system_role?: boolean }
}

/**
 * Returns the adapter of a llama-server by its answer at /props; undefined when its chat template supports tools.
 * Without that it would answer every request with plain text, also with `tool_choice: required`. The adapter describes
 * the tools in the prompt, constrains the answer with a grammar and parses the calls from the text, as the built-in
 * engine does.
 */
export function toolAdapter(props: unknown): Adapter | undefined {
  const caps = (props as Props | null)?.chat_template_caps
  if (caps?.supports_tools !== false) return undefined
  const constraintOf = openConstraints()
  const hasSystem = caps.supports_system_role !== false

  return (call, listener) => {
    const text = call.path === path ? bodyText(call.body) : undefined
    if (text === undefined || !/"(tools|tool_calls|tool_call_id)"/.test(text)) return undefined
    const body = JSON.parse(text) as Record<string, unknown>
    return adapted(body).then(({ body, names }) => ({
      call: { ...call, body } satisfies EngineCall,
      listener: names === undefined ? listener : callListener(names, call, listener, () => `call_${ulid()}`),
    }))
  }

  async function adapted(sent: Record<string, unknown>): Promise<{ body: string; names: string[] | undefined }> {
    const { tools: _tools, tool_choice: _choice, parallel_tool_calls: _parallel, ...rest } = sent
    // The request was validated before; its model name is the upstream name.
    const request = sent as unknown as ChatRequest
    const calling = callingOf(request, hermes)
    const media = openMediaParts()
    const plainMessages = inProse(
      request.messages.map(message => withoutFunctions({ ...message, content: media.taken(message.content) })),
    )
    if (!calling)
      return { body: JSON.stringify({ ...rest, messages: plainMessages.map(media.restored) }), names: undefined }
    const grammar = await constraintOf({
      calling,
      format: request.response_format,
      marks: undefined,
      beginning: 'answer',
    })
    const tools = calling.tools.map(({ tool }) => tool)
    const text = toolIntroduction(tools, calling.forced, calling.parallel)
    const messages = introduced(plainMessages, text, hasSystem).map(media.restored)
    const body: Record<string, unknown> = { ...rest, messages, grammar }
    delete body.response_format
    // An answer that must be a call contains no text for a stop string.
    if (calling.forced) delete body.stop
    return { body: JSON.stringify(body), names: tools.map(tool => tool.function.name) }
  }
}
