import { existsSync, statSync } from 'node:fs'
import { type FailureCode, failures } from '../../core/failure.ts'
import { type Graph, graphEdges } from '../../core/workflows/graph.ts'
import type { Client } from '../client/client.ts'
import { storedSentence } from '../client/refusal.ts'
import { saveFiles } from '../generation/save-files.ts'
import type { JobFile } from '../jobs/job.ts'
import { cancel, followOrCancel } from '../jobs/submit.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import type { Interrupts } from '../terminal/interruption.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { RunDisplay } from './display.ts'
import { cancelExecution, type Execution, isOver } from './execution.ts'
import { followExecution } from './follow.ts'

/** Throws usage when files cannot be saved there. Called before anything runs. */
export function checkOutputFolder(out: string | undefined): void {
  if (out === '') throw usageFailure('--out is empty. Name a folder.')
  if (out !== undefined && existsSync(out) && !statSync(out).isDirectory())
    throw usageFailure(`--out ${out} is not a folder.`)
}

/** Follows an execution to its end, or cancels it. */
export const followOrCancelExecution = (
  connect: () => Client,
  id: string,
  display: RunDisplay,
  interrupts: Interrupts,
): Promise<Execution> =>
  followOrCancel(
    {
      id,
      follow: following =>
        followExecution(connect, id, { ...following, onChange: snapshot => display.change(snapshot) }),
      cancel: signal => cancel(connect, client => cancelExecution(client, id), signal),
    },
    text => display.say(text),
    interrupts,
  )

interface ReportOptions {
  graph: Graph
  out: string | undefined
  json: boolean
  /** The only node whose outputs are printed and saved; undefined for all. */
  only?: string | undefined
}

/**
 * Prints the result of an execution on standard output: texts and the paths of saved files, or the record as JSON. The
 * outputs of several nodes are below their names.
 * Throws the failure of an execution that did not complete.
 */
export async function reportOutcome(
  terminal: Terminal,
  connect: () => Client,
  execution: Execution,
  display: RunDisplay,
  interrupts: Interrupts,
  { graph, out, json, only }: ReportOptions,
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
  const last = graph.nodes.filter(node => !withSuccessor.has(node))
  const outputs =
    only === undefined
      ? outputsOf(execution, graph.nodes, new Set(last))
      : outputsOf(execution, [only], new Set([only]))
  for (const { node, texts, files, seed } of outputs) {
    if (!json && outputs.length > 1) terminal.print(terminal.paint.strong(`${printable(node)}:`))
    if (!json)
      // A program gets the text as it is.
      for (const text of texts)
        if (terminal.isTerminal) terminal.print(printable(text))
        else terminal.stdout.write(`${text}\n`)
    if (files.length === 0) continue
    const paths = await saveFiles({ id, files, seed }, { kind: 'folder', path: out ?? '.' }, connect, terminal, {
      signal: interrupts.leave,
      topic: node,
      suffix: '',
      onTrouble: text => terminal.remark(text),
    })
    if (!json) for (const path of paths) terminal.print(path)
  }
}

/** Returns the failure of an execution that ended without outputs, with the server's message. */
function failureOfExecution({ id, status, error }: Execution): Error {
  if (status === 'cancelled') return refused('cancelled', `The execution ${id} was cancelled.`)
  const cause = error?.cause?.code ?? error?.code ?? ''
  return refused(
    Object.hasOwn(failures, cause) ? (cause as FailureCode) : 'worker_error',
    `The execution ${id} ${status === 'timed_out' ? 'took too long' : 'failed'}. ${storedSentence(error?.message ?? 'The server gave no reason.')}${status === 'failed' ? ` Continue from there: infer execution retry ${id}` : ''}`,
  )
}

/** Whether the execution is unknown or has not ended. */
export const isUnfinished = (execution: Execution | undefined): boolean =>
  execution === undefined || !isOver(execution.status)

/** The output of a node for the user: texts to print, and files to save. */
interface NodeOutput {
  node: string
  texts: string[]
  files: JobFile[]
  seed: number | undefined
}

/**
 * Returns the outputs of an execution, node by node: the values that the definition's `outputs` name, and the complete
 * result of each node in `last`, the nodes without a successor.
 */
export function outputsOf({ outputs }: Execution, order: readonly string[], last: ReadonlySet<string>): NodeOutput[] {
  return order.flatMap(node => {
    const output = outputs && Object.hasOwn(outputs, node) ? outputs[node] : undefined
    if (!output) return []
    const { result, values } = output
    // That of a node with `for_each` is a list of results.
    const results: unknown[] = Array.isArray(result) ? result : [result]
    const files = results.flatMap(filesIn)
    const named = Object.values(values)
    if (named.length === 0 && !last.has(node)) return []
    // Of a node that makes files, only texts are printed: the other values describe the files.
    const isText = (value: unknown) => typeof value === 'string' && !files.some(({ url }) => url === value)
    const texts =
      files.length > 0
        ? named.filter(isText).map(stringOf)
        : named.length > 0
          ? named.map(stringOf)
          : results.map(textOf)
    const seed = (result as { seed_used?: unknown } | null)?.seed_used
    return [{ node, texts, files, seed: typeof seed === 'number' ? seed : undefined }]
  })
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Returns the text of a chat answer or completion; any other result as JSON. */
function textOf(result: unknown): string {
  const { choices, text } = (result ?? {}) as { choices?: unknown; text?: unknown }
  const [first] = Array.isArray(choices) ? (choices as { message?: { content?: unknown }; text?: unknown }[]) : []
  const content = first?.message?.content ?? first?.text ?? text
  return typeof content === 'string' ? content : JSON.stringify(result)
}

/** Returns the image, video and audio files of a result. */
function filesIn(result: unknown): JobFile[] {
  const { images, data, video, audio_url, ...facts } = (result ?? {}) as Record<
    'images' | 'data' | 'video' | 'audio_url',
    unknown
  >
  const audio = audio_url === undefined ? undefined : { ...facts, url: audio_url }
  // `data` has the same images in the OpenAI-compatible form, for results that keep only that one.
  const imageFiles = [images, data].find(list => Array.isArray(list)) as unknown[] | undefined
  return [...(imageFiles ?? []), video, audio].flatMap(file => {
    const { url } = (file ?? {}) as { url?: unknown }
    if (typeof url !== 'string' || !URL.canParse(url)) return []
    const name = new URL(url).pathname.split('/').at(-1)
    return [{ ...(file as object), url, file_name: (file as JobFile).file_name ?? name }]
  })
}
