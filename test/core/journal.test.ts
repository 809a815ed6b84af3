import { expect, test } from 'vitest'
import { openJournal } from '../../core/journal.ts'
import { openLog } from '../../core/log.ts'

const messages = (lines: string[]) => lines.map(line => (JSON.parse(line) as { message: string }).message)

test('it keeps log entries from info upwards, whatever is printed, and sends them to followers', () => {
  const written: string[] = []
  const { log, journal } = openJournal(openLog('error', line => written.push(line)))
  const heard: string[] = []
  const stop = journal.follow(line => heard.push(line))
  log.debug('too fine')
  log.info('one', { model: 'a' })
  log.warn('two', {}, new Error('because of sk-infer-0123456789abc'))
  stop()
  log.error('three')
  expect(messages(written)).toEqual(['three'])
  expect(messages(journal.recent())).toEqual(['one', 'two', 'three'])
  expect(messages(heard)).toEqual(['one', 'two'])
  expect(JSON.parse(journal.recent()[0]!)).toMatchObject({ level: 'info', model: 'a' })
  expect(journal.recent()[1]).toContain('because of [redacted]')
})

test('it is bounded: the oldest lines are dropped first', () => {
  const { log, journal } = openJournal(
    openLog('error', () => {}),
    1_000,
  )
  for (let at = 0; at < 100; at++) log.info(`line ${at}`)
  const kept = messages(journal.recent())
  expect(kept.at(-1)).toBe('line 99')
  expect(kept.length).toBeGreaterThan(5)
  expect(journal.recent().join('').length).toBeLessThanOrEqual(1_000)
})
