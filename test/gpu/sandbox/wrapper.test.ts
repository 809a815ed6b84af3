import { constants } from 'node:os'
import { describe, expect, test } from 'vitest'
import { probeWrapper } from '../../../gpu/sandbox/probe-wrapper.ts'
import { candidates, exitStatus, noWrapper, wrapCommand } from '../../../gpu/sandbox/wrapper.ts'

test('the order of preference: a process namespace by setpriv and unshare, bubblewrap, both without their own /proc', () => {
  expect(
    candidates.map(({ name, prefix }) => [name, prefix.includes('--mount-proc') || prefix.includes('--proc')]),
  ).toEqual([
    ['unshare', true],
    ['unshare', true],
    ['bubblewrap', true],
    ['unshare', false],
    ['unshare', false],
  ])
})

test('every wrapper except plain ends with the server and has a process namespace', () => {
  for (const { prefix } of candidates) {
    const all = prefix.join(' ')
    expect(all).toMatch(/--pdeathsig KILL|--die-with-parent/)
    expect(all).toMatch(/--pid|--unshare-pid/)
  }
})

test("an engine's arguments are passed on unchanged, whatever they contain", () => {
  const argv = ['vllm', 'serve', '; rm -rf /', '$(id)', '--', '"']
  for (const wrapper of [...candidates, noWrapper]) {
    const { file, args } = wrapCommand(wrapper, argv)
    expect([file, ...args].slice(-argv.length)).toEqual(argv)
    expect([file, ...args]).toEqual([...wrapper.prefix, ...argv])
  }
})

describe('statusOf', () => {
  const cases: [wrapper: 'plain' | 'unshare', code: number | null, signal: string | null, expected: string][] = [
    ['plain', 3, null, '3'],
    ['plain', 139, null, '139'],
    ['plain', null, 'SIGSEGV', 'SIGSEGV'],
    ['unshare', 3, null, '3'],
    ['unshare', 139, null, 'SIGSEGV'],
    ['unshare', 137, null, 'SIGKILL'],
    ['unshare', 255, null, '255'],
    ['unshare', null, 'SIGKILL', 'SIGKILL'],
  ]
  test.each(cases)('%s, code %s, signal %s is %s', (name, code, signal, expected) => {
    const wrapper = [noWrapper, ...candidates].find(one => one.name === name)!
    expect(exitStatus(wrapper, code, signal, constants.signals)).toBe(expected)
  })
})

test('the probe reports for each wrapper whether it works here, and falls back to plain', async () => {
  const { wrapper, tried } = await probeWrapper(process.env)
  expect(tried.length).toBeGreaterThan(0)
  expect(tried.slice(0, -1).every(one => one.why)).toBe(true)
  if (wrapper.name !== 'plain') expect(tried.at(-1)!.why).toBeNull()

  const none = await probeWrapper({ PATH: '/nowhere' })
  expect(none.wrapper).toBe(noWrapper)
  expect(none.tried.map(one => one.why)).toEqual([
    'setpriv is not installed',
    'setpriv is not installed',
    'bwrap is not installed',
    'setpriv is not installed',
    'setpriv is not installed',
  ])
})
