import type { ReadStream, WriteStream } from 'node:tty'
import type { Failure } from '../core/failure.ts'
import { failureJson, failureText } from './failure-text.ts'
import { type Paint, paintFor } from './paint.ts'
import { drawTable } from './table.ts'

/** What a command has from the process it runs in. */
export interface ProcessStreams {
  stdin: NodeJS.ReadStream
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  env: Record<string, string | undefined>
}

/**
 * Where a command speaks to its user: answers go to standard output, remarks to standard error, so that a pipe carries
 * answers only. With `--json` an answer is one JSON document and a failure is one on standard error.
 */
export function openTerminal({ stdin, stdout, stderr, env }: ProcessStreams) {
  let leaving = 0
  const isTerminal = Boolean((stdout as Partial<WriteStream>).isTTY)
  const paint: Paint = paintFor(isTerminal)
  const remarks: Paint = paintFor(Boolean((stderr as Partial<WriteStream>).isTTY))
  let waitedFor = ''

  return {
    stdin,
    stdout,
    stderr,
    environment: env,
    paint,
    /** Whether standard output shows colours. */
    hasColors: paint.strong('a') !== 'a',
    /** The colours for standard error. */
    remarkPaint: remarks,
    /** A person sits in front of standard output. */
    isTerminal,
    /** A person sits in front of input and output both, so questions can be asked. */
    interactive: isTerminal && Boolean((stdin as Partial<ReadStream>).isTTY),
    print(text: string): void {
      stdout.write(`${text}\n`)
    },
    json(value: unknown): void {
      stdout.write(`${JSON.stringify(value, null, isTerminal ? 2 : 0)}\n`)
    },
    table(head: readonly string[], rows: readonly (readonly string[])[]): void {
      stdout.write(`${drawTable(head, rows, paint, isTerminal ? stdout.columns : 0)}\n`)
    },
    /** Something worth knowing that is not the answer. */
    remark(text: string): void {
      stderr.write(`${remarks.faint(text)}\n`)
    },
    warn(text: string): void {
      stderr.write(`${remarks.warning('Warning:')} ${text}\n`)
    },
    failed(failure: Failure, asJson: boolean): void {
      stderr.write(asJson ? failureJson(failure) : failureText(failure, remarks))
    },
    /** One line that is overwritten as work goes on; nothing in a pipe. Call it with an empty text at the end. */
    progress(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) stderr.write(`\r\u001b[K${text}`)
    },
    /** What is being waited for: one line that is overwritten, in a pipe a remark that is made once. */
    waiting(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) stderr.write(`\r\u001b[K${remarks.faint(text)}`)
      else if (text !== waitedFor) stderr.write(`${text}\n`)
      waitedFor = text
    },
    /** The exit code with which the program will end; the highest that was asked for counts. */
    setExitCode(exitCode: number): void {
      leaving = Math.max(leaving, exitCode)
    },
    exitCode: (): number => leaving,
  }
}
export type Terminal = ReturnType<typeof openTerminal>
