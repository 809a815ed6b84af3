import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { type Connection, openDatabase } from '../../../../core/store/sqlite/database.ts'
import { openGroup, openTransactions, type SentCommand } from '../../../../core/store/sqlite/group.ts'
import { openJobCounts } from '../../../../core/store/sqlite/job-counts.ts'
import { temporaryDirectory } from '../_store.ts'

const sqliteError = (code: string) => Object.assign(new Error(code), { name: 'SqliteError', code })

function setup() {
  const directory = temporaryDirectory()
  const connection = openDatabase(join(directory.path, 'x.db'))
  connection.exec(`CREATE TABLE t (a INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE job_counts (status TEXT, jobs INTEGER) STRICT; INSERT INTO job_counts VALUES ('pending', 0)`)
  const insert = connection.prepare('INSERT INTO t VALUES (?)')
  const tally = openJobCounts(connection)
  const commands = {
    add(a: number) {
      tally.move('org_1', undefined, 'pending')
      return insert.run(a).changes
    },
    addJob: (a: number) => insert.run(a).changes,
    addThenFail(a: number) {
      insert.run(a)
      tally.move('org_1', undefined, 'pending')
      throw new Failure('conflict', 'No.', { retryAfterMs: 7 })
    },
    refuse: (code: 'queue_full') => new Failure(code, 'No.'),
    addThenBreak(a: number) {
      insert.run(a)
      throw new TypeError('a bug')
    },
    corrupt(a: number) {
      insert.run(a)
      throw sqliteError('SQLITE_CORRUPT')
    },
  }
  return {
    connection,
    commands,
    tally,
    counted: () => connection.prepare('SELECT jobs FROM job_counts').pluck().get(),
    rows: () => connection.prepare('SELECT a FROM t ORDER BY a').pluck().all(),
    [Symbol.dispose]() {
      connection.close()
      directory[Symbol.dispose]()
    },
  }
}

test('a failed command is rolled back alone, and the others are committed together', () => {
  using it = setup()
  const answers = openTransactions(
    it.connection,
    it.commands,
    it.tally,
  )([
    ['add', [1]],
    ['addThenFail', [2]],
    ['add', [1]],
    ['addThenBreak', [3]],
    ['nothing', [0]],
    ['add', [4]],
  ])
  expect(it.rows()).toEqual([1, 4])
  expect(it.counted()).toBe(2)
  expect(it.connection.inTransaction).toBe(false)
  expect(answers.values).toEqual([1, undefined, undefined, undefined, undefined, 1])
  expect(answers.failures.map(([at, { code }]) => [at, code])).toEqual([
    [1, 'conflict'],
    [2, 'internal_error'],
    [3, 'internal_error'],
    [4, 'internal_error'],
  ])
  expect(answers.failures[0]![1]).toMatchObject({ message: 'No.', retryAfterMs: 7 })
  expect(answers.failures[2]![1].cause).toContain('a bug')
})

test('a command that returns its failure is answered with it, and the others are not run again', () => {
  using it = setup()
  let runs = 0
  const commands = { ...it.commands, once: () => ++runs }
  const answers = openTransactions(
    it.connection,
    commands,
    it.tally,
  )([
    ['once', []],
    ['refuse', ['queue_full']],
    ['add', [1]],
  ])
  expect(answers.values).toEqual([1, undefined, 1])
  expect(answers.failures.map(([at, { code }]) => [at, code])).toEqual([[1, 'queue_full']])
  expect([it.rows(), runs]).toEqual([[1], 1])
})

test('an error of the whole database rolls back the batch and is thrown', () => {
  using it = setup()
  const batch = openTransactions(it.connection, it.commands, it.tally)
  expect(() =>
    batch([
      ['add', [1]],
      ['corrupt', [2]],
    ]),
  ).toThrow('SQLITE_CORRUPT')
  expect([it.rows(), it.counted()]).toEqual([[], 0])
  expect(batch([['add', [5]]]).values).toEqual([1])
  expect([it.rows(), it.counted()]).toEqual([[5], 1])
})

/** A database that may not grow past its pages, which SQLite reports like a full disk. */
function fill(connection: Connection): void {
  const pages = connection.pragma('page_count', { simple: true }) as number
  connection.pragma(`max_page_count = ${pages}`)
}

test('without space new work is refused, and the end of work is written by freeing the reserve', () => {
  using it = setup()
  it.connection.exec("CREATE TABLE big (a TEXT); CREATE TABLE ballast (a TEXT); INSERT INTO ballast VALUES ('x')")
  const grow = it.connection.prepare('INSERT INTO big VALUES (?)')
  const commands = {
    ...it.commands,
    addJob: () => grow.run('x'.repeat(100_000)),
    'jobs.settle': () => grow.run('y'.repeat(100_000)),
  }
  let released = 0
  const group = openGroup(it.connection, commands, it.tally, () => {
    released += 1
    it.connection.pragma('max_page_count = 1000000')
  })
  fill(it.connection)
  const asked: SentCommand[] = [
    ['add', [1]],
    ['addJob', [0]],
    ['jobs.settle', [0]],
    ['jobs.claim', [0]],
    ['add', [2]],
  ]
  const { answers, full } = group(asked)
  expect(full).toBe(true)
  expect(released).toBe(1)
  expect(answers.failures.map(([at, { code, retryAfterMs }]) => [at, code, retryAfterMs])).toEqual([
    [1, 'disk_full', 5000],
    [3, 'disk_full', 5000],
  ])
  expect(it.rows()).toEqual([1, 2])
  expect(it.connection.prepare('SELECT count(*) FROM big').pluck().get()).toBe(1)
})

test('when the reserve is not enough, commands that fit are done, and none is half done', () => {
  using it = setup()
  it.connection.exec('CREATE TABLE big (a TEXT)')
  const grow = it.connection.prepare('INSERT INTO big VALUES (?)')
  const group = openGroup(
    it.connection,
    { ...it.commands, 'jobs.settle': () => grow.run('y'.repeat(100_000)) },
    it.tally,
    () => {},
  )
  fill(it.connection)
  const { answers } = group([
    ['add', [1]],
    ['jobs.settle', [0]],
    ['add', [2]],
  ])
  expect(answers.failures.map(([at, { code }]) => [at, code])).toEqual([[1, 'disk_full']])
  expect(it.rows()).toEqual([1, 2])
  expect(it.connection.prepare('SELECT count(*) FROM big').pluck().get()).toBe(0)
})
