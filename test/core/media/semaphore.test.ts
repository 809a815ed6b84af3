import { expect, test } from 'vitest'
import { openSemaphore } from '../../../core/media/semaphore.ts'

const settled = () => new Promise(resolve => setImmediate(resolve))

/** Work that runs until the test ends it. */
function work() {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let begun = false
  return {
    begin: () => {
      begun = true
      return promise
    },
    begun: () => begun,
    end: resolve,
    fail: reject,
  }
}

test('a limited number run at once, the others in the order of arrival, per name', async () => {
  const semaphore = openSemaphore({ permits: 2, maxWaiting: 2, full: 'full' })
  const [a, b, c, d, other] = [work(), work(), work(), work(), work()]
  const all = [a, b, c, d].map(one => semaphore.run('mine', undefined, one.begin))
  const another = semaphore.run('other', undefined, other.begin)
  await settled()
  expect([a, b, c, d, other].map(one => one.begun())).toEqual([true, true, false, false, true])
  await expect(semaphore.run('mine', undefined, work().begin)).rejects.toMatchObject({
    code: 'no_capacity',
    message: 'full',
  })
  b.fail(new Error('broken'))
  await expect(all[1]).rejects.toThrow('broken')
  await settled()
  expect([c.begun(), d.begun()]).toEqual([true, false])
  a.end('a')
  await settled()
  expect(d.begun()).toBe(true)
  for (const one of [c, d, other]) one.end('done')
  expect(await Promise.all([all[0], all[2], all[3], another])).toEqual(['a', 'done', 'done', 'done'])
  expect(semaphore.busy()).toBe(0)
})

test('aborted work leaves the queue, and the permit goes to the next', async () => {
  const semaphore = openSemaphore({ permits: 1, maxWaiting: 5, full: 'full' })
  const [a, b, c] = [work(), work(), work()]
  const control = new AbortController()
  const first = semaphore.run('mine', undefined, a.begin)
  const second = semaphore.run('mine', control.signal, b.begin)
  const third = semaphore.run('mine', undefined, c.begin)
  control.abort(new Error('gone'))
  await expect(second).rejects.toThrow('gone')
  await expect(semaphore.run('mine', control.signal, b.begin)).rejects.toThrow('gone')
  a.end('a')
  await first
  await settled()
  expect([b.begun(), c.begun()]).toEqual([false, true])
  c.end('c')
  await third
  expect(semaphore.busy()).toBe(0)
})
