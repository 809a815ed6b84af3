import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from '../client/client.ts'
import { exitCodes } from '../terminal/exit-codes.ts'
import { openLiveLines } from '../terminal/live-lines.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type Batch, batchStatusText, countsText, getBatch, hasEnded } from './batch.ts'

const barWidth = 24
/** Milliseconds between two reads: short at first, for small batches. */
const [firstMs, longestMs] = [200, 2_000]

/** One line of progress: `in progress ━━━━────────── 42 %  210 of 500 completed`. */
function batchLine(batch: Batch): string {
  const { total, completed, failed } = batch.request_counts
  const part = total === 0 ? 0 : (completed + failed) / total
  const filled = Math.floor(part * barWidth)
  const bar = `${'━'.repeat(filled)}${'─'.repeat(barWidth - filled)} ${String(Math.floor(part * 100)).padStart(3)} %`
  return `${batchStatusText(batch)} ${bar}  ${countsText(batch)}`
}

/** Follows a batch to its end: a bar on a terminal, a line for each change in a pipe. */
export async function followBatch(
  client: Client,
  id: string,
  { terminal, quiet, signal }: { terminal: Terminal; quiet: boolean; signal: AbortSignal },
): Promise<Batch> {
  let batch = await getBatch(client, id, signal)
  const live =
    terminal.stderr.isTTY && !quiet ? openLiveLines(terminal.stderr, () => [batchLine(batch)], Date.now) : undefined
  let said = ''
  try {
    for (let waitMs = firstMs; ; waitMs = Math.min(longestMs, waitMs * 1.5)) {
      const line = `${batchStatusText(batch)}: ${countsText(batch)}`
      if (live) live.draw()
      else if (!quiet && line !== said) terminal.remark(line)
      said = line
      if (hasEnded(batch)) return batch
      await delay(waitMs, undefined, { signal })
      batch = await getBatch(client, id, signal)
    }
  } finally {
    live?.close()
  }
}

/** Says how a batch has ended, and sets the exit code. */
export function reportEnd(batch: Batch, terminal: Terminal): void {
  for (const { line, message } of batch.errors?.data ?? [])
    terminal.remark(line === null ? printable(message) : `Line ${line}: ${printable(message)}`)
  terminal.print(`${batch.id} is ${batchStatusText(batch)}: ${countsText(batch)}.`)
  if (batch.output_file_id !== null) terminal.remark(`Answers: infer batch results ${batch.id}`)
  if (batch.error_file_id !== null) terminal.remark(`Errors: infer batch results ${batch.id} --errors`)
  setEndCode(batch, terminal)
}

/** A batch that did not complete, or in which no line did, is a failure. */
export function setEndCode({ status, request_counts: counts }: Batch, terminal: Terminal): void {
  if (status !== 'completed' || (counts.total > 0 && counts.completed === 0)) terminal.setExitCode(exitCodes.failed)
}
