import { randomBytes } from 'node:crypto'
import { Template } from '@huggingface/jinja'
import { inTurns } from '../../../core/dialects/turns.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { thinkMarksOf } from './answer-parser.ts'
import { hermes, type ToolCallForm, type ToolCalling, toolCallFormOf } from './tools/call-form.ts'
import { openToolCallParser } from './tools/call-parser.ts'
import * as conversation from './tools/conversation.ts'

type Message = ChatRequest['messages'][number]

/** A part of the prompt. In `plain` parts the texts of control tokens are ordinary text. */
export interface PromptPart {
  text: string
  plain: boolean
}

export interface TemplateOptions {
  /** The Jinja source from the model file; default: ChatML. */
  source: string | undefined
  /** Texts of the tokens that begin and end a text, for templates that write them. */
  bos: string | null
  eos: string | null
  controls: readonly string[]
}

const chatMl =
  "{%- for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>\\n' }}{% endfor -%}" +
  "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif -%}"

/**
 * Opens a model's chat template. `render` returns the prompt in parts, so that a caller's text cannot become a control
 * token: a user's `<|im_end|>` stays ten characters of text. Such texts are replaced by random marks before the
 * template runs and restored afterwards, because templates trim, compare and search contents, which must otherwise be
 * unchanged. Throws Failure `worker_error` for a template that cannot be parsed.
 */
export function openTemplate({ source = chatMl, bos, eos, controls }: TemplateOptions) {
  let template: Template
  try {
    template = new Template(source)
  } catch (cause) {
    throw new Failure('worker_error', `The chat template of the model cannot be read: ${(cause as Error).message}.`, {
      cause,
    })
  }
  const nonce = randomBytes(8).toString('hex')
  const mark = new RegExp(`\uE000${nonce}:(\\d+)\uE001`)
  const control = controls.length
    ? new RegExp(
        controls
          .toSorted((a, b) => b.length - a.length)
          .map(escaped)
          .join('|'),
        'g',
      )
    : undefined
  const knowsDeveloper = source.includes('developer')
  const ours = { add_generation_prompt: true, bos_token: bos ?? '', eos_token: eos ?? '' }
  const native = toolCallFormOf(source)
  const abilities = abilitiesOf(variables => template.render({ ...variables, ...ours }), native)
  /** The format of tool calls: that of the template, else the default one. */
  const form = native !== undefined && abilities.tools ? native : hermes

  /** Throws Failure `invalid_value` with the template's error message if the template refuses the messages. */
  function render(messages: readonly Message[], variables: Record<string, unknown> = {}, calling?: ToolCalling) {
    const hidden: string[] = []
    const hide = (text: string) =>
      control ? text.replace(control, found => `\uE000${nonce}:${hidden.push(found) - 1}\uE001`) : text
    const role = (message: Message) =>
      message.role === 'function' ? 'tool' : message.role === 'developer' && !knowsDeveloper ? 'system' : message.role
    const plain = messages.map((message, at) => ({ ...message, role: role(message), content: contentOf(message, at) }))
    const adaptedMessages = adapted(plain.map(conversation.withoutFunctions), form, abilities, calling)
    const tools = calling && abilities.tools ? { tools: calling.tools.map(({ tool }) => tool) } : {}
    let text: string
    try {
      text = template.render({
        ...(eachString({ ...variables, ...tools }, hide) as Record<string, unknown>),
        messages: adaptedMessages.map(message => eachString(message, hide)),
        ...ours,
      })
    } catch (cause) {
      const why = `The chat template of this model refuses these messages: ${(cause as Error).message}.`
      throw new Failure('invalid_value', why, { param: 'messages', cause })
    }
    if (hidden.length === 0) return [{ text, plain: false }]
    // Splitting by a pattern with a group returns text, number, text, number, …, text.
    return text
      .split(mark)
      .map((part, at) => (at % 2 ? { text: hidden[Number(part)]!, plain: true } : { text: part, plain: false }))
      .filter(stretch => stretch.text !== '')
  }

  return { form, /** Undefined for a model without reasoning. */ marks: thinkMarksOf(source), render }
}

export type ChatTemplate = ReturnType<typeof openTemplate>

/** Converts calls, their results and the tools to what this template supports. */
function adapted(
  messages: readonly conversation.Message[],
  form: ToolCallForm,
  abilities: ReturnType<typeof abilitiesOf>,
  calling: ToolCalling | undefined,
): conversation.Message[] {
  const whole = ordered(messages, abilities).map(({ tool_calls, ...message }) =>
    tool_calls?.length ? { ...message, tool_calls } : message,
  )
  if (!abilities.tools) {
    const adaptedMessages = conversation.inProse(whole)
    if (!calling) return adaptedMessages
    const tools = calling.tools.map(({ tool }) => tool)
    const text = conversation.toolIntroduction(tools, calling.forced, calling.parallel)
    return conversation.introduced(adaptedMessages, text, abilities.system)
  }
  const single = abilities.manyCalls ? whole : conversation.oneToolCallEach(whole)
  const filled = abilities.noContent ? single : single.map(message => ({ ...message, content: message.content ?? '' }))
  const short = form.family.startsWith('mistral') ? conversation.withShortIds(filled) : filled
  return abilities.argumentObjects ? conversation.withObjects(short) : short
}

/** Converts instructions to what this template supports: anywhere, at the start, or in a message of the user. */
function ordered(
  messages: readonly conversation.Message[],
  { system, systemAnywhere }: ReturnType<typeof abilitiesOf>,
): readonly conversation.Message[] {
  if (systemAnywhere) return messages
  const turns = inTurns(messages)
  return system || turns[0]?.role !== 'system' ? turns : inTurns([{ ...turns[0], role: 'user' }, ...turns.slice(1)])
}

/** A message's text: parts are joined by line breaks. Throws Failure `unsupported_parameter` for other parts. */
function contentOf(message: Message, at: number): string | null {
  const { content } = message
  if (content === null || content === undefined || typeof content === 'string') return content ?? null
  return content
    .map((part, place) => {
      if (part.type === 'text') return part.text
      if (part.type === 'refusal') return part.refusal
      throw invalid(
        `messages[${at}].content[${place}]`,
        `The built-in engine reads text only; '${part.type}' parts need another engine.`,
        'unsupported_parameter',
      )
    })
    .join('\n')
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

function eachString(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(entry => eachString(entry, change))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [change(key), eachString(entry, change)]))
}

const user = { role: 'user', content: 'Probe?' }
const tool = {
  type: 'function',
  function: {
    name: 'probe_tool',
    description: 'Probes.',
    parameters: { type: 'object', properties: { probe_key: { type: 'string', description: 'A key.' } } },
  },
}
const argumentsText = '{"probe_key": "probe_value"}'
const shown = /"probe_key"\s*:\s*"probe_value"/g

const calls = (args: unknown, count: number, content: string | null) => {
  const ids = Array.from({ length: count }, (_, at) => `abcdefgh${at}`)
  return [
    user,
    {
      role: 'assistant',
      content,
      tool_calls: ids.map(id => ({ id, type: 'function', function: { name: 'probe_tool', arguments: args } })),
    },
    ...ids.map(tool_call_id => ({ role: 'tool', name: 'probe_tool', tool_call_id, content: 'Probed.' })),
  ]
}

/**
 * Finds the features of a template by rendering probes, because templates do not declare them. `render` may throw. `form` is the assumed format of calls. The template supports tools only if it
 * lists them and writes calls exactly in that format, because other formats use the same marks.
 */
function abilitiesOf(render: (variables: Record<string, unknown>) => string, form: ToolCallForm | undefined) {
  const attempt = (variables: Record<string, unknown>) => {
    try {
      return render(variables)
    } catch {
      return ''
    }
  }
  const called = (args: unknown, count: number, content: string | null) =>
    attempt({ messages: calls(args, count, content), tools: [tool] })
  const times = (args: unknown, count: number, content: string | null) =>
    called(args, count, content).match(shown)?.length ?? 0
  const system = { role: 'system', content: 'System probe.' }
  const systems = attempt({ messages: [system, system, user, system] }).match(/System probe\./g)?.length
  const object: unknown = JSON.parse(argumentsText)
  const best = (content: string | null) => Math.max(times(argumentsText, 1, content), times(object, 1, content))
  const noContent = best(null) > 0 || best('') === 0
  const content = noContent ? null : ''
  const argumentObjects = times(object, 1, content) > 0 || times(argumentsText, 1, content) === 0
  const args = argumentObjects ? object : argumentsText
  return {
    /** Tools, tool calls and their results. */
    tools:
      form !== undefined &&
      attempt({ messages: [user], tools: [tool] }).includes('probe_tool') &&
      writes(called(args, 1, content), form),
    manyCalls: times(args, 2, content) >= 2,
    /** Whether it expects the arguments of calls as objects, which it serializes, instead of as JSON text. */
    argumentObjects,
    /** Messages without content, as for tool calls; some templates fail unless the content is an empty string. */
    noContent,
    system: attempt({ messages: [system, user] }).includes('System probe.'),
    /** Several system messages, also after one of the user. */
    systemAnywhere: systems === 3,
  }
}

/** Whether the call in a prompt has this format, that is, whether the parser would read it as that call. */
function writes(prompt: string, form: ToolCallForm): boolean {
  // Use the last one: the tools and their instructions come before it.
  const at = form.bare
    ? Array.from(prompt.matchAll(/\{\s*"name":\s*"probe_tool"/g)).at(-1)?.index
    : prompt.lastIndexOf(form.marker)
  if (at === undefined || at < 0) return false
  const [call, args] = openToolCallParser(form, ['probe_tool']).push(prompt.slice(at))
  return call?.kind === 'call' && args?.kind === 'arguments' && args.text.includes('"probe_value"')
}
