import { existsSync, statSync } from 'node:fs'
import { type FailureCode, failures } from '../../core/failure.ts'
import { type Graph, graphEdges } from '../../core/workflows/graph.ts'
import type { Client } from '../client/client.ts'
import { storedSentence } from '../client/command-hints.ts'
import { saveFiles } from '../generation/save-files.ts'
import type { Interrupts } from '../jobs/interrupt.ts'
import { cancel } from '../jobs/submit.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/paint.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { RunDisplay } from './display.ts'
import { type Execution, ExecutionAnswer, executionPath, isOver } from './execution.ts'
import { followExecution } from './follow.ts'
import { outputsOf } from './outputs.ts'

/** Throws usage when files cannot be saved there. Called before anything runs. */
export function checkOutputFolder(out: string | undefined): void {
  if (out === '') throw usageFailure('--out is empty. Name a folder.')
  if (out !== undefined && existsSync(out) && !statSync(out).isDirectory())
    throw usageFailure(`--out ${out} is not a folder.`)
}

/**
 * Follows an execution to its end. The first Ctrl-C cancels it; the server's response to the cancellation is the end.
 */
export async function followOrCancel(
  connect: () => Client,
  id: string,
  display: RunDisplay,
  { cancel: cancelSignal, leave }: Interrupts,
): Promise<Execution> {
  const ended = new AbortController()
  const cancelled = new Promise<void>(resolve => {
    if (cancelSignal.aborted) resolve()
    else cancelSignal.addEventListener('abort', () => resolve(), { once: true })
  }).then(async () => {
    if (ended.signal.aborted) return new Promise<never>(() => undefined)
    display.say(`Cancelling ${id}. Press Ctrl-C again to leave it running.`)
    const answer = await cancel(connect, { path: `${executionPath(id)}/cancel`, answer: ExecutionAnswer }, leave)
    // The execution had ended already: `followed` resolves with its end.
    return answer?.execution ?? new Promise<never>(() => undefined)
  })
  const followed = followExecution(connect, id, {
    signal: AbortSignal.any([leave, ended.signal]),
    onChange: snapshot => display.change(snapshot),
    onTrouble: sentence =>
      display.say(sentence === undefined ? 'Connected again.' : `Reconnecting to ${id}. ${sentence}`),
  })
  followed.catch(() => undefined)
  try {
    return await Promise.race([followed, cancelled])
  } finally {
    ended.abort()
  }
}

export interface ReportOptions {
  graph: Graph
  out: string | undefined
  json: boolean
}

/**
 * Prints the result of an execution on standard output: texts and the paths of saved files, or the record as JSON.
 * Throws the failure of an execution that did not complete.
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
  // With --json files are saved only if --out names a folder: the record contains their URLs.
  if (json && out === undefined) return
  const withSuccessor = new Set(graphEdges(graph).map(({ from }) => from))
  const outputs = outputsOf(execution, graph.nodes, new Set(graph.nodes.filter(node => !withSuccessor.has(node))))
  for (const { node, texts, files, seed } of outputs) {
    if (terminal.isTerminal && !json && outputs.length > 1) terminal.print(terminal.paint.strong(printable(node)))
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

/** Returns the failure of an execution that ended without outputs, with the server's message. */
function failureOfExecution({ id, status, error }: Execution): Error {
  if (status === 'cancelled') return refused('cancelled', `The execution ${id} was cancelled.`)
  const cause = (error as { cause?: { code?: string } | null } | null | undefined)?.cause?.code ?? error?.code ?? ''
  return refused(
    Object.hasOwn(failures, cause) ? (cause as FailureCode) : 'worker_error',
    `The execution ${id} ${status === 'timed_out' ? 'took too long' : 'failed'}. ${storedSentence(error?.message ?? 'The server gave no reason.')}${status === 'failed' ? ` Continue from there: infer execution retry ${id}` : ''}`,
  )
}

/** Whether the execution is unknown or has not ended. */
export const isUnfinished = (execution: Execution | undefined): boolean =>
  execution === undefined || !isOver(execution.status)
