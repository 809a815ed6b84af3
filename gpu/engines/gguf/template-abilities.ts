/** What a chat template can say. Found by trying, because templates do not declare it. */
export interface Abilities {
  /** Tools, calls of them and their results. */
  tools: boolean
  /** Several calls in one message. */
  manyCalls: boolean
  /** Whether it wants the arguments of calls as objects, to write them as JSON itself, or as the text that they are. */
  argumentObjects: boolean
  /** Messages without content, as calls have them; some templates stumble unless theirs is an empty text. */
  noContent: boolean
  /** Messages of the system. */
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

/** Tries a template out. `render` may throw. `knownForm` is whether its form of calls is one that we know. */
export function abilitiesOf(render: (variables: Record<string, unknown>) => string, knownForm: boolean): Abilities {
  const attempt = (variables: Record<string, unknown>) => {
    try {
      return render(variables)
    } catch {
      return ''
    }
  }
  const times = (args: unknown, count: number, content: string | null) =>
    attempt({ messages: calls(args, count, content), tools: [tool] }).match(shown)?.length ?? 0
  const object: unknown = JSON.parse(argumentsText)
  const best = (content: string | null) => Math.max(times(argumentsText, 1, content), times(object, 1, content))
  const noContent = best(null) > 0 || best('') === 0
  const content = noContent ? null : ''
  const argumentObjects = times(object, 1, content) > 0 || times(argumentsText, 1, content) === 0
  return {
    tools: knownForm && attempt({ messages: [user], tools: [tool] }).includes('probe_tool'),
    manyCalls: times(argumentObjects ? object : argumentsText, 2, content) >= 2,
    argumentObjects,
    noContent,
    system: attempt({ messages: [{ role: 'system', content: 'System probe.' }, user] }).includes('System probe.'),
  }
}
