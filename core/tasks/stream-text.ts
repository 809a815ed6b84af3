/** Server-sent events as text: latin1 of their bytes, in which every byte is one character. */

/** Converts a text to that form. */
export const latin1 = (text: string): string =>
  // oxlint-disable-next-line no-control-regex
  /^[\u0000-\u007f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1')

/** Returns the data of one event; undefined without `data:` lines. */
export function dataOf(event: string): string | undefined {
  if (event.startsWith('data:') && !event.includes('\n') && !event.endsWith('\r'))
    return event.slice(event.charCodeAt(5) === 0x20 ? 6 : 5).trim()
  const lines = event.split(/\r\n|\n|\r/).filter(line => line.startsWith('data:'))
  if (lines.length === 0) return undefined
  return lines
    .map(line => line.slice(line.charCodeAt(5) === 0x20 ? 6 : 5))
    .join('\n')
    .trim()
}

/** Returns the `event:` field of one event. */
export const eventOf = (event: string): string | undefined =>
  event.startsWith('data:') ? undefined : /(?:^|[\r\n])event: ?([^\r\n]*)/.exec(event)?.[1]

/** The result of a template. */
export interface Applied {
  /** The rewritten event; undefined if it is unchanged. */
  event: string | undefined
  /** The JSON text of the usage in the event. */
  usage: string | undefined
}
export interface EventTemplate {
  /** Returns undefined if the event differs in more than its text. */
  apply(event: string): Applied | undefined
}

const texts = /"(?:content|text|reasoning_content|reasoning|arguments)"\s*:\s*"/g
/** The inside of a JSON string. */
const inside = /^(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*$/
/** A usage object at the end of an event, as vLLM writes it with `continuous_usage_stats`. */
const usageAtEnd = ',"usage":{'
const plainUsage = /^\{(?:"\w+":(?:\d+|null|\{(?:"\w+":(?:\d+|null),?)*\}),?)*\}\}$/

/**
 * Makes a template for events like `came` from one event that was rewritten as `went`: the parts before and after its only
 * text, original and rewritten. Undefined if the event has several texts or the texts cannot be matched.
 */
export function template(came: string, went: string): EventTemplate | undefined {
  const [before, after, usage] = around(came) ?? []
  const [newBefore, newAfter] = around(went.slice(0, -2)) ?? []
  if (before === undefined || after === undefined || newBefore === undefined || newAfter === undefined) return undefined
  if (
    came.slice(before.length, endOfText(came, before.length)) !==
    went.slice(newBefore.length, endOfText(went, newBefore.length))
  )
    return undefined
  const same = before === newBefore && after === newAfter && usage === undefined
  const end = `${newAfter}\n\n`
  return {
    apply(event) {
      if (!event.startsWith(before)) return undefined
      let stop = event.length
      let reportedUsage: string | undefined
      if (usage !== undefined) {
        const at = event.lastIndexOf(usageAtEnd)
        if (at < 0) return undefined
        reportedUsage = event.slice(at + usageAtEnd.length - 1)
        if (!plainUsage.test(reportedUsage)) return undefined
        reportedUsage = reportedUsage.slice(0, -1)
        stop = at
      }
      const to = stop - after.length
      if (to <= before.length || !event.startsWith(after, to)) return undefined
      const text = event.slice(before.length, to)
      if ((text.includes('\\') || text.includes('"')) && !inside.test(text)) return undefined
      return { event: same ? undefined : newBefore + text + end, usage: reportedUsage }
    },
  }
}

function around(event: string): [before: string, after: string, usage: string | undefined] | undefined {
  const found = [...event.matchAll(texts)]
  const filled = found.filter(match => event[match.index + match[0].length] !== '"')
  if (filled.length !== 1 || !event.startsWith('data:')) return undefined
  const from = filled[0]!.index + filled[0]![0].length
  const rest = event.slice(endOfText(event, from))
  const at = rest.lastIndexOf(usageAtEnd)
  if (at < 0) return [event.slice(0, from), rest, undefined]
  const usage = rest.slice(at + usageAtEnd.length - 1)
  return plainUsage.test(usage) ? [event.slice(0, from), rest.slice(0, at), usage] : undefined
}

/** Returns where the JSON string ends whose content begins at `from`. */
function endOfText(event: string, from: number): number {
  for (let at = from; at < event.length; at++) {
    if (event[at] === '\\') at++
    else if (event[at] === '"') return at
  }
  return event.length
}
