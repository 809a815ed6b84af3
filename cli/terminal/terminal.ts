import type { ReadStream, WriteStream } from 'node:tty'
import type { Failure } from '../../core/failure.ts'
import { failureJson, failureText } from './failure-text.ts'
import { type Paint, paintFor, printableJson, printableStyled } from './styled-line.ts'
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
  /** Everything that is printed passes here: names, messages and answers come from others. */
  const onStdout = (text: string) => void stdout.write(`${printableStyled(text, paint)}\n`)
  const overwrite = (text: string) => void stderr.write(`\r\u001b[K${printableStyled(text, remarks)}`)
  const onStderr = (text: string) => void stderr.write(`${printableStyled(text, remarks)}\n`)

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
    print: onStdout,
    json(value: unknown): void {
      stdout.write(`${isTerminal ? printableJson(value, 2) : JSON.stringify(value)}\n`)
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
      const cells = rows.map(row => row.map(cell => printableStyled(cell, paint).replaceAll(/[\t\n]+/g, ' ')))
      if (!optional || width === 0) return onStdout(drawTable(head, cells, paint, width))
      const kept = fittingColumns(head, cells, width, optional)
      const pick = (row: readonly string[]) => kept.map(column => row[column] ?? '')
      onStdout(drawTable(pick(head), cells.map(pick), paint, width, true))
      const omitted = head.filter((_, column) => !kept.includes(column))
      if (omitted.length > 0) onStderr(remarks.faint(`A wider terminal, or --json, also shows: ${omitted.join(', ')}`))
    },
    /** Prints information that is not the result. */
    remark: (text: string): void => onStderr(remarks.faint(text)),
    warn: (text: string): void => onStderr(`${remarks.warning('Warning:')} ${text}`),
    failed(failure: Failure, asJson: boolean): void {
      stderr.write(asJson ? failureJson(failure) : failureText(failure, remarks))
    },
    /** Overwrites one line of progress; prints nothing in a pipe. Call it with an empty text at the end. */
    progress(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) overwrite(text)
    },
    /** Shows the reason for waiting: overwrites one line; in a pipe prints each reason once. */
    waiting(text: string): void {
      if ((stderr as Partial<WriteStream>).isTTY) overwrite(remarks.faint(text))
      else if (text !== lastWaiting) onStderr(text)
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
