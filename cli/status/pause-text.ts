import type { Api } from '../client/client.ts'
import { lengthText, timeText } from '../terminal/quantities-text.ts'

/** When a pause holds, for people: `until it is resumed`, `while blender runs`, `0 18 * * 1-5 (UTC) for 14 h`. */
export function whenText({
  until,
  when,
  schedule,
  configured,
}: Pick<Api['DevicePause'], 'until' | 'when' | 'schedule' | 'configured'>): string {
  const kind = schedule
    ? `${schedule.cron} (${schedule.timezone}) for ${lengthText(schedule.for)}`
    : when !== null
      ? `while ${when.slice('process:'.length)} runs`
      : until === null
        ? 'until it is resumed'
        : `until ${timeText(until * 1_000)}`
  const last = until !== null && (schedule || when !== null) ? `, until ${timeText(until * 1_000)}` : ''
  return `${kind}${last}${configured ? ' (infer.yaml)' : ''}`
}
