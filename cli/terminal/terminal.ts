import type { ReadStream, WriteStream } from 'node:tty'
import type { Failure } from '../../core/failure.ts'
import { failureJson, failureText } from './failure-text.ts'
import { type Paint, paintFor } from './styled-line.ts'
import { drawTable, fittingColumns } from './table.ts'

/** Streams and environment of the process. */
export interface ProcessStreams {
  stdin: NodeJS.ReadStream
  stdout: NodeJS.WriteStream
  stderr: NodeJS.WriteStream
  env: Record<string, string | undefined>
}

/**
 * Opens the output of a command: results go to standard output, remarks to standard error, so that a pipe carries only
 * results. With `--json` a result is one JSON document, and a failure is one JSON document on standard error.
 */
export function openTerminal({ stdin, stdout, stderr, env }: ProcessStreams) {
  let finalExitCode = 0
  const isTerminal = Boolean((stdout as Partial<WriteStream>).isTTY)
  const paint: Paint = paintFor(isTerminal)
  const remarks: Paint = paintFor(Boolean((stderr as Partial<WriteStream>).isTTY))
  let lastWaiting = ''

  return {
    stdin,
    stdout,
    stderr,
    environment: env,
    paint,
    /** Whether standard output shows colors. */
    hasColors: paint.strong('a') !== 'a',
    /** The styles for standard error. */
    remarkPaint: remarks,
    /** Whether standard output is a terminal. */
    isTerminal,
    /** Whether input and output are both terminals, so that the command can ask questions. */
    interactive: isTerminal && Boolean((stdin as Partial<ReadStream>).isTTY),
    print(text: string): void {
      stdout.write(`${text}\n`)
    },
    json(value: unknown): void {
      stdout.write(`${JSON.stringify(value, null, isTerminal ? 2 : 0)}\n`)
    },
    /** Prints the result: the document with `--json`, else the text. */
    result(asJson: boolean | undefined, document: unknown, text: string): void {
      if (asJson) this.json(document)
      else this.print(text)
    },
    /**
     * Prints a table. In a narrow terminal, columns that are `optional` are left out, the most useful ones (the first)
     * last, and the last column wraps instead of being cut.
     */
    table(
      head: readonly string[],
      rows: readonly (readonly string[])[],
      { optional }: { optional?: readonly string[] } = {},
    ): void {
      const width = isTerminal ? stdout.columns : 0
      if (!optional || width === 0) return void stdout.write(`${drawTable(head, rows, paint, width)}\n`)
      const kept = fittingColumns(head, rows, width, optional)
      const pick = (row: readonly string[]) => kept.map(column => row[column] ?? '')
      stdout.write(`${drawTable(pick(head), rows.map(pick), paint, width, true)}\n`)
      const omitted = head.filter((_, column) => !kept.includes(column))
      if (omitted.length > 0)
        stderr.write(`${remarks.faint(`A wider terminal, or --json, also shows: ${omitted.join(', ')}`)}\n`)
    },
    /** Prints information that is not the result. */
    remark(text: string): void {
      stderr.write(`${remarks.faint(text)}\n`)
    },
    warn(text: string): void {
      stderr.write(`${remarks.warning('Warning:')} ${text}\n`)
    },
    failed(failure: Failure, asJson: boolean): void {
      stderr.write(asJson ? failureJson(failure) : failureText(failure, remarks))
    },
    /** Overwrites one line of progress; prints nothing in a pipe. Call it with an empty text at the end. */
    progress(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) stderr.write(`\r\u001b[K${text}`)
    },
    /** Shows the reason for waiting: overwrites one line; in a pipe prints each reason once. */
    waiting(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) stderr.write(`\r\u001b[K${remarks.faint(text)}`)
      else if (text !== lastWaiting) stderr.write(`${text}\n`)
      lastWaiting = text
    },
    /** Sets the exit code of the program; the highest one counts. */
    setExitCode(exitCode: number): void {
      finalExitCode = Math.max(finalExitCode, exitCode)
    },
    exitCode: (): number => finalExitCode,
  }
}
export type Terminal = ReturnType<typeof openTerminal>
