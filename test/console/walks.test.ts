import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { firefox, windowless } from '../_browser.ts'
import { full } from '../_full.ts'
import { openConsole, type TestConsole } from './_console.ts'
import { go, walks } from './_walks.ts'

/**
 * The main walks in both browsers: Chromium, and the Firefox that people have. In the whole suite only: the tests of the pages
 * go the same ways in Chromium.
 */
describe.runIf(full).each([
  ['Chromium', windowless],
  ['Firefox', firefox],
] as const)('%s', (_, program) => {
  let console: TestConsole
  beforeAll(async () => {
    console = await openConsole(undefined, {}, program)
  })
  afterAll(() => console?.[Symbol.asyncDispose]())

  test.skipIf(program === undefined).each(walks)('$role: $task', async walk => {
    await using opened = await console.open('/', walk.signedOut ? { token: null } : {})
    if (walk.signedOut) opened.expectErrors(/401/)
    expect((await go(walk, opened, console)).clicks).toBeGreaterThan(1)
  })
})
