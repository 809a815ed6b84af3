import { type Paint, printable } from '../terminal/styled-line.ts'

const painters: Record<string, (paint: Paint) => (text: string) => string> = {
  debug: paint => paint.faint,
  info: paint => paint.name,
  warn: paint => paint.warning,
  error: paint => paint.bad,
}

/** Formats a JSON log line for a terminal: time, speaker, level, message, fields, and the cause below. */
export function logLine(json: string, paint: Paint, speaker?: string): string {
  let entry: Record<string, unknown>
  try {
    entry = JSON.parse(json) as Record<string, unknown>
  } catch {
    return json
  }
  const { time, level, message, cause, ...fields } = entry
  const name = String(level)
  const facts = Object.entries(fields).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const who = speaker === undefined ? '' : `${paint.strong(printable(speaker))} `
  const head = `${paint.faint(String(time).slice(11, 19))} ${who}${(painters[name] ?? painters.info!)(paint)(name.padEnd(5))} ${printable(String(message))}`
  const tail = facts.length > 0 ? `  ${paint.faint(printable(facts.join(' ')))}` : ''
  const why = typeof cause === 'string' ? `\n${paint.faint(printable(cause).replace(/^/gm, '    '))}` : ''
  return `${head}${tail}${why}\n`
}
