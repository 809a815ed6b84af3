import { beforeAll, expect, test } from 'vitest'
import { openapi } from '../../server/docs/openapi.ts'
import { routeTable } from '../../server/routes.ts'
import { full } from '../_full.ts'
import { apiParts, apiText, componentText, headText, operationText } from './api-text.ts'

type Json = Record<string, unknown>
interface Api {
  info: Json
  tags: Json[]
  paths: Record<string, Record<string, Json>>
  components: Record<string, Record<string, Json>>
}

let api: Api
beforeAll(() => {
  api = JSON.parse(JSON.stringify(openapi(routeTable(), ''))) as Api
})

/** Each part of the description with the function of its text, as `apiParts` puts them together. */
function parts(): { name: string; value: object; text: () => string }[] {
  const { info, tags, paths, components, ...head } = api
  const { version: _, ...about } = info
  const first = { head: head as Json, about, tags }
  return [
    { name: 'head', value: first, text: () => headText(first.head ?? {}, first.about ?? {}, first.tags ?? []) },
    ...Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).map(([method, value]) => ({
        name: `${method} ${path}`,
        value,
        text: () => operationText(method, path, value),
      })),
    ),
    ...Object.entries(components).flatMap(([kind, all]) =>
      Object.entries(all).map(([name, value]) => ({
        name: `${kind} ${name}`,
        value,
        text: () => componentText(kind, name, value),
      })),
    ),
  ]
}

test('the text consists of the parts whose changes are tested here', () => {
  const texts = parts().map(({ text }) => text())
  expect(apiParts(api)).toEqual(texts)
  expect(apiText(api)).toBe(`${texts.join('\n\n')}\n`)
  // Each begins with its own name, so that a part that is added, removed or renamed changes the text.
  expect(new Set(texts.map(text => text.split(' ').slice(0, 2).join(' '))).size).toBe(texts.length)
})

// It tests the text of test/server/openapi.test.ts with each of more than 50,000 changes.
test.runIf(full)('every change of any member, value or element of the description changes its text', () => {
  const unseen: string[] = []
  let changes = 0
  for (const { name, value, text } of parts()) {
    const before = text()
    for (const [what, change] of changesOf(value, name)) {
      changes++
      const undo = change()
      if (changed(text, before)) undo()
      else {
        unseen.push(what)
        undo()
      }
    }
    expect(text(), name).toBe(before)
  }
  expect(changes).toBeGreaterThan(50_000)
  expect(unseen).toEqual([])
})

/** A form that the text cannot express is a change that nobody overlooks. */
function changed(text: () => string, before: string): boolean {
  try {
    return text() !== before
  } catch {
    return true
  }
}

type Change = [what: string, change: () => () => void]

/** Removes each member, changes each value, adds a member to each object and an element to each list. */
function* changesOf(at: object, path: string): Generator<Change> {
  if (path !== 'head')
    yield [
      `${path}: added`,
      Array.isArray(at) ? () => (at.push('x-new'), () => void at.pop()) : () => set(at as Json, 'x-new', 1),
    ]
  for (const [key, value] of Object.entries(at)) {
    const [of, place] = [at as Json, `${path} ${key}`]
    yield [`${place}: removed`, () => remove(of, key)]
    if (typeof value === 'object' && value !== null) yield* changesOf(value, place)
    else yield [`${place}: changed`, () => set(of, key, typeof value === 'number' ? value + 1 : `${String(value)}x`)]
  }
}

function set(at: Json, key: string, value: unknown): () => void {
  const [had, before] = [Object.hasOwn(at, key), at[key]]
  at[key] = value
  return () => {
    if (had) at[key] = before
    else delete at[key]
  }
}

function remove(at: Json, key: string): () => void {
  if (Array.isArray(at)) {
    const [value] = at.splice(Number(key), 1)
    return () => void at.splice(Number(key), 0, value)
  }
  const all = Object.entries(at)
  delete at[key]
  return () => {
    for (const [name] of all) delete at[name]
    Object.assign(at, Object.fromEntries(all))
  }
}
