import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  CommandFailure,
  exitCodeOf,
  exitCodes,
  failureOfThrown,
  refused,
  usageFailure,
} from '../../../cli/terminal/exit-codes.ts'
import { Failure } from '../../../core/failure.ts'
import { StoreRefusal } from '../../../core/store/refusal.ts'

const system = (code: string, syscall?: string) => Object.assign(new Error(`${code}: it failed`), { code, syscall })

const ends: [rule: string, thrown: unknown, exitCode: number][] = [
  ['wrong usage is 64', usageFailure('Write it so.'), 64],
  ['an error of the server is 1', refused('invalid_value', 'No.'), 1],
  ['a data directory in use is 64', new StoreRefusal(64, 'Another infer runs.'), 64],
  ['damaged data is 65', new StoreRefusal(65, 'Damaged.'), 65],
  ['a database whose disk fails is 74', new StoreRefusal(74, 'No disk.'), 74],
  ['an invalid configuration is 65', new Failure('invalid_value', 'infer.yaml:3: no.'), 65],
  ['an unreadable configuration is 74', new Failure('invalid_value', 'x', { cause: system('EACCES', 'open') }), 74],
  ['an address in use is 74', new Failure('conflict', 'x', { cause: system('EADDRINUSE', 'listen') }), 74],
  ['a full disk is 74', new Failure('disk_full', 'x'), 74],
  ['a missing object is 1', new Failure('not_found', 'x'), 1],
  ['an error of the operating system is 74', system('ENOSPC', 'write'), 74],
  ['a damaged SQLite file is 65', system('SQLITE_CORRUPT'), 65],
  ['a file that is not a database is 65', system('SQLITE_NOTADB'), 65],
  ['an unreadable SQLite file is 74', system('SQLITE_IOERR_READ'), 74],
  ['an unexpected error is 70', new TypeError('x is not a function'), 70],
  ['an error with its own code is 70', Object.assign(new Error('x'), { code: 'ERR_MODULE_NOT_FOUND' }), 70],
  ['a thrown value that is not an error is 70', 'a string', 70],
]

test.each(ends)('%s', (_, thrown, exitCode) => {
  expect(exitCodeOf(failureOfThrown(thrown))).toBe(exitCode)
})

test('an error of the operating system keeps its message and its code', () => {
  let thrown: unknown
  try {
    readFileSync('/nonexistent/file')
  } catch (cause) {
    thrown = cause
  }
  const failure = failureOfThrown(thrown)
  expect(failure).toBeInstanceOf(CommandFailure)
  expect(failure.message).toBe("No such file or directory, open '/nonexistent/file' (ENOENT).")
})

test('an unexpected error is shown with its message and its cause', () => {
  const failure = failureOfThrown(new TypeError('x is not a function'))
  expect(failure.message).toContain('x is not a function')
  expect(failure.cause).toBeInstanceOf(TypeError)
})

test('the exit codes are those of the manual', () => {
  expect(exitCodes).toEqual({ fine: 0, failed: 1, usage: 64, data: 65, internal: 70, io: 74, unfinished: 75 })
})
