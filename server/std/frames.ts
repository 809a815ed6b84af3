/**
 * What the relay must know of a stream of server-sent events, found by looking for words in the bytes instead of
 * parsing every chunk into objects: where frames end, whether one carries an error, the usage, a finish reason or the
 * end. Frames are looked at as latin1 text; every word looked for is ASCII.
 */
export interface FrameFacts {
  kind: 'content' | 'usage' | 'error' | 'done' | 'comment'
  /** The JSON text behind `data:` where it must be parsed (usage and error frames), else undefined. */
  data: string | undefined
  /** Whether some choice ended in this frame. */
  finished: boolean
}

/** The end of the last complete frame in the text, 0 when there is none. */
export function completeUntil(text: string): number {
  const unix = text.lastIndexOf('\n\n')
  const windows = text.lastIndexOf('\r\n\r\n')
  return Math.max(unix < 0 ? 0 : unix + 2, windows < 0 ? 0 : windows + 4)
}

const empty = /"choices"\s*:\s*\[\s*\]/
const usageObject = /"usage"\s*:\s*\{/
const finish = /"finish_reason"\s*:\s*"/

/** What one frame (without its ending blank line) says. */
export function factsOf(frame: string): FrameFacts {
  if (!frame.startsWith('data:'))
    return {
      kind: frame.startsWith('event: error') || frame.startsWith('event:error') ? 'error' : 'comment',
      data: dataOf(frame),
      finished: false,
    }
  const start = frame.charCodeAt(5) === 0x20 ? 6 : 5
  if (frame.startsWith('[DONE]', start)) return { kind: 'done', data: undefined, finished: false }
  const hasChoices = frame.includes('"choices"')
  if (!hasChoices)
    return { kind: frame.includes('"error"') ? 'error' : 'comment', data: dataOf(frame), finished: false }
  const hasUsage = frame.includes('"usage"') && usageObject.test(frame)
  const finished = frame.includes('"finish_reason"') && finish.test(frame)
  if (!hasUsage) return { kind: 'content', data: undefined, finished }
  return { kind: empty.test(frame) ? 'usage' : 'content', data: frame.slice(start), finished }
}

function dataOf(frame: string): string | undefined {
  const line = frame.split(/\r?\n/).find(part => part.startsWith('data:'))
  return line?.slice(5).trim()
}
