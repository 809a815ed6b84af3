import type { CallForm } from './tools/call-form.ts'
import { openCallParser } from './tools/call-parser.ts'

/** The features of a chat template. Found by rendering probes, because templates do not declare them. */
export interface TemplateAbilities {
  /** Tools, tool calls and their results. */
  tools: boolean
  /** Several calls in one message. */
  manyCalls: boolean
  /** Whether it expects the arguments of calls as objects, which it serializes, instead of as JSON text. */
  argumentObjects: boolean
  /** Messages without content, as for tool calls; some templates fail unless the content is an empty string. */
  noContent: boolean
  /** System messages. */
  system: boolean
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
 * Probes a template. `render` may throw. `form` is the assumed format of calls. The template supports tools only if it
 * lists them and writes calls exactly in that format, because other formats use the same marks.
 */
export function abilitiesOf(
  render: (variables: Record<string, unknown>) => string,
  form: CallForm | undefined,
): TemplateAbilities {
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
  const object: unknown = JSON.parse(argumentsText)
  const best = (content: string | null) => Math.max(times(argumentsText, 1, content), times(object, 1, content))
  const noContent = best(null) > 0 || best('') === 0
  const content = noContent ? null : ''
  const argumentObjects = times(object, 1, content) > 0 || times(argumentsText, 1, content) === 0
  const args = argumentObjects ? object : argumentsText
  return {
    tools:
      form !== undefined &&
      attempt({ messages: [user], tools: [tool] }).includes('probe_tool') &&
      writes(called(args, 1, content), form),
    manyCalls: times(args, 2, content) >= 2,
    argumentObjects,
    noContent,
    system: attempt({ messages: [{ role: 'system', content: 'System probe.' }, user] }).includes('System probe.'),
  }
}

/** Whether the call in a prompt has this format, that is, whether the parser would read it as that call. */
function writes(prompt: string, form: CallForm): boolean {
  // Use the last one: the tools and their instructions come before it.
  const at = form.bare
    ? Array.from(prompt.matchAll(/\{\s*"name":\s*"probe_tool"/g)).at(-1)?.index
    : prompt.lastIndexOf(form.marker)
  if (at === undefined || at < 0) return false
  const [call, args] = openCallParser(form, ['probe_tool']).push(prompt.slice(at))
  return call?.kind === 'call' && args?.kind === 'arguments' && args.text.includes('"probe_value"')
}
