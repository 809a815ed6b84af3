import { expect, test } from 'vitest'
import {
  type OutboxStore,
  openOutbox,
  type Submission,
} from '../../../../../../server/console/app/pages/playground/run/outbox.ts'

/** A store in memory, which outlives a page. */
function memoryStore(): OutboxStore & { kept: () => Submission[] } {
  let text: string | null = null
  return {
    read: () => text,
    write: submissions => void (text = submissions.length === 0 ? null : JSON.stringify(submissions)),
    kept: () => JSON.parse(text ?? '[]') as Submission[],
  }
}
const submission = (key: string): Submission => ({ key, task: 't', model: 'm', inputs: { prompt: key } })
const failure = (status: number) => Object.assign(new Error(`status ${status}`), { status })

test('a submission is kept before it is sent, and until it is answered', async () => {
  const store = memoryStore()
  const keptWhenSent: string[][] = []
  const outbox = openOutbox({
    store,
    post: async () => void keptWhenSent.push(store.kept().map(({ key }) => key)),
  })
  expect(await outbox.send([submission('a.0'), submission('a.1')])).toEqual([])
  expect(keptWhenSent[0]).toEqual(['a.0', 'a.1'])
  expect(store.kept()).toEqual([])
  expect(outbox.entries).toEqual([])
})

test('a page that is left before the answer sends the same again', async () => {
  const store = memoryStore()
  const left = openOutbox({ store, post: () => new Promise(() => {}) })
  void left.send([submission('a.0')])
  const sent: Submission[] = []
  const next = openOutbox({ store, post: async one => void sent.push(one) })
  expect(next.entries).toEqual([{ ...submission('a.0'), message: '' }])
  await next.resume()
  expect(sent).toMatchObject([submission('a.0')])
  expect(store.kept()).toEqual([])
})

test('a refused submission is forgotten, and one without an answer stays until it is discarded', async () => {
  const store = memoryStore()
  const post = ({ key }: Submission) => Promise.reject(failure(key === 'a.0' ? 400 : 0))
  const outbox = openOutbox({ store, post })
  const refused = await outbox.send([submission('a.0'), submission('a.1')])
  expect(refused.map(({ message }) => message)).toEqual(['status 400'])
  expect(outbox.entries).toEqual([{ ...submission('a.1'), message: 'status 0' }])
  outbox.discard('a.1')
  expect(store.kept()).toEqual([])
})

test('what signing out has removed does not come back with a late answer', async () => {
  const store = memoryStore()
  const answers = new Map<string, () => void>()
  const outbox = openOutbox({ store, post: ({ key }) => new Promise<void>(resolve => answers.set(key, resolve)) })
  const sent = outbox.send([submission('a.0'), submission('a.1')])
  store.write([])
  answers.get('a.0')!()
  answers.get('a.1')!()
  await sent
  expect(outbox.entries).toEqual([])
  expect(store.kept()).toEqual([])
})

test('without room in the browser a submission without an answer stays on the page', async () => {
  const store: OutboxStore = {
    read: () => null,
    write() {
      throw new Error('QuotaExceededError')
    },
  }
  const outbox = openOutbox({
    store,
    post: ({ key }) => (key === 'a.0' ? Promise.resolve() : Promise.reject(failure(0))),
  })
  await outbox.send([submission('a.0'), submission('a.1')])
  expect(outbox.entries).toEqual([{ ...submission('a.1'), message: 'status 0' }])
})
