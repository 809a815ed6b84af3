import { expect, test } from 'vitest'
import { AbortSource, type CallerSignal } from '../../core/abort-source.ts'

/** Both kinds, which must behave alike wherever a `CallerSignal` is accepted. */
const kinds: [string, () => { leaving: CallerSignal; abort: (reason: unknown) => void }][] = [
  [
    'AbortSource',
    () => {
      const leaving = new AbortSource()
      return { leaving, abort: reason => leaving.abort(reason) }
    },
  ],
  [
    'AbortSignal',
    () => {
      const controller = new AbortController()
      return { leaving: controller.signal, abort: reason => controller.abort(reason) }
    },
  ],
]

test.each(kinds)('%s calls each listener once, in order, with the first reason', (_, make) => {
  const { leaving, abort } = make()
  const heard: string[] = []
  const second = () => heard.push(`second ${String(leaving.reason)}`)
  leaving.addEventListener('abort', () => heard.push(`first ${String(leaving.aborted)}`), { once: true })
  leaving.addEventListener('abort', second)
  leaving.addEventListener('abort', second)
  expect(() => leaving.throwIfAborted()).not.toThrow()
  abort('gone')
  abort('again')
  expect(heard).toEqual(['first true', 'second gone'])
  expect(leaving.reason).toBe('gone')
  expect(() => leaving.throwIfAborted()).toThrow('gone')
})

test.each(kinds)('%s does not call a removed listener, even one removed by an earlier listener', (_, make) => {
  const { leaving, abort } = make()
  const heard: string[] = []
  const early = () => heard.push('early')
  const late = () => heard.push('late')
  leaving.addEventListener('abort', early)
  leaving.addEventListener('abort', () => leaving.removeEventListener('abort', late))
  leaving.addEventListener('abort', late)
  leaving.removeEventListener('abort', early)
  abort('gone')
  expect(heard).toEqual([])
})

test.each(kinds)('%s does not call listeners added after the abort', (_, make) => {
  const { leaving, abort } = make()
  const heard: string[] = []
  abort('gone')
  leaving.addEventListener('abort', () => heard.push('late'))
  expect([leaving.aborted, heard]).toEqual([true, []])
})
