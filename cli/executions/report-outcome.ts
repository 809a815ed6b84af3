import { existsSync, statSync } from 'node:fs'
import { type FailureCode, failures } from '../../core/failure.ts'
import { edgesOf, type Graph } from '../../core/workflows/graph.ts'
import type { Client } from '../client.ts'
import { storedSentence } from '../command-hints.ts'
import { refused, usage } from '../exit-codes.ts'
import { saveFiles } from '../generation/save-files.ts'
import type { Interrupts } from '../jobs/interrupt.ts'
import { cancel } from '../jobs/submit.ts'
import { printable } from '../paint.ts'
import type { Terminal } from '../terminal.ts'
import type { RunDisplay } from './display.ts'
import { type Execution, ExecutionAnswer, executionPath, isOver } from './execution.ts'
import { followExecution } from './follow.ts'
import { outputsOf } from './outputs.ts'

/** Throws usage when files cannot be saved in there: said before anything runs. */
export function checkOutputFolder(out: string | undefined): void {
  if (out === '') throw usage('--out is empty. Name a folder.')
  if (out !== undefined && existsSync(out) && !statSync(out).isDirectory()) throw usage(`--out ${out} is no folder.`)
}

/** Follows an execution to its end, and cancels it at the first Ctrl-C: what the server then answers is its end. */
export async function followOrCancel(
  connect: () => Client,
  id: string,
  display: RunDisplay,
  { cancel: asked, leave }: Interrupts,
): Promise<Execution> {
  const known = new AbortController()
  const cancelled = new Promise<void>(resolve => {
    if (asked.aborted) resolve()
    else asked.addEventListener('abort', () => resolve(), { once: true })
  }).then(async () => {
    if (known.signal.aborted) return new Promise<never>(() => undefined)
    display.say(`Cancelling ${id}. Ctrl-C again leaves it running.`)
    const answer = await cancel(connect, { path: `${executionPath(id)}/cancel`, answer: ExecutionAnswer }, leave)
    // It had ended by then: its following says how.
    return answer?.execution ?? new Promise<never>(() => undefined)
  })
  const followed = followExecution(connect, id, {
    signal: AbortSignal.any([leave, known.signal]),
    onChange: snapshot => display.change(snapshot),
    onTrouble: sentence =>
      display.say(sentence === undefined ? 'Connected again.' : `${id} is looked for again. ${sentence}`),
  })
  followed.catch(() => undefined)
  try {
    return await Promise.race([followed, cancelled])
  } finally {
    known.abort()
  }
}

export interface ReportOptions {
  graph: Graph
  out: string | undefined
  json: boolean
}

/**
 * Says what came of an execution: texts and the paths of saved files on standard output, or the record as JSON. Throws
 * what it failed of.
 */
export async function reportOutcome(
  terminal: Terminal,
  connect: () => Client,
  execution: Execution,
  display: RunDisplay,
  interrupts: Interrupts,
  { graph, out, json }: ReportOptions,
): Promise<void> {
  const { id, status } = execution
  display.close()
  if (json) terminal.json(execution)
  if (status === 'cancelled' && interrupts.cancel.aborted) {
    if (!json) terminal.remark(`Cancelled ${id}.`)
    return
  }
  if (status !== 'completed') throw failureOfExecution(execution)
  // A program that reads the record fetches files by their addresses, unless it says where they are to lie.
  if (json && out === undefined) return
  const before = new Set(edgesOf(graph).map(({ from }) => from))
  const made = outputsOf(execution, graph.nodes, new Set(graph.nodes.filter(node => !before.has(node))))
  for (const { node, texts, files, seed } of made) {
    if (terminal.isTerminal && !json && made.length > 1) terminal.print(terminal.paint.strong(printable(node)))
    if (!json) for (const text of texts) terminal.print(terminal.isTerminal ? printable(text) : text)
    if (files.length === 0) continue
    const paths = await saveFiles(
      {
        id,
        task: '',
        model_id: '',
        status,
        created_at: execution.created_at,
        result: { images: files, ...(seed === undefined ? {} : { seed_used: seed }) },
      },
      { kind: 'folder', path: out ?? '.' },
      connect,
      terminal,
      { signal: interrupts.leave, topic: node, suffix: '', onTrouble: text => terminal.remark(text) },
    )
    if (!json) for (const path of paths) terminal.print(path)
  }
}

/** Why an execution that is over has no outputs, in the words of the server. */
export function failureOfExecution({ id, status, error }: Execution): Error {
  if (status === 'cancelled') return refused('cancelled', `The execution ${id} was cancelled.`)
  const cause = (error as { cause?: { code?: string } | null } | null | undefined)?.cause?.code ?? error?.code ?? ''
  return refused(
    Object.hasOwn(failures, cause) ? (cause as FailureCode) : 'worker_error',
    `The execution ${id} ${status === 'timed_out' ? 'took too long' : 'failed'}. ${storedSentence(error?.message ?? 'Nobody said why.')}${status === 'failed' ? ` Go on from there: infer execution retry ${id}` : ''}`,
  )
}

/** Whether there is still something to follow. */
export const isUnfinished = (execution: Execution | undefined): boolean =>
  execution === undefined || !isOver(execution.status)
