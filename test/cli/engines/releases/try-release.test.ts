import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { foreignFault, startFault } from '../../../../cli/engines/releases/try-release.ts'

const ended = { exitCode: 127, timedOut: false, stdout: '', stderr: '' }

test.each([
  [{ ...ended, exitCode: 0 }, null],
  [{ ...ended, exitCode: undefined, signal: 'SIGILL' }, /instructions that this one lacks \(SIGILL\)/],
  [{ ...ended, exitCode: undefined, timedOut: true }, /not answered in time/],
  [
    {
      ...ended,
      stderr: './llama-server: error while loading shared libraries: libvulkan.so.1: cannot open shared object',
    },
    /the library libvulkan\.so\.1 is missing here\. Install it \(Debian, Ubuntu: sudo apt install libvulkan1\)/,
  ],
  [
    { ...ended, stderr: "x: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by x)" },
    /built for a newer Linux \(GLIBC_2\.38\)/,
  ],
  [{ ...ended, exitCode: undefined, errorCode: 'EACCES' }, /cannot be started \(EACCES\)/],
])('what %o means', (run, said) => {
  if (said === null) expect(startFault(run)).toBeNull()
  else expect(startFault(run)).toMatch(said)
})

test('a program for another kind of processor is known by its header', () => {
  const own = readFileSync('/bin/true').subarray(0, 20)
  const other = process.arch === 'x64' ? 'arm64' : 'x64'
  expect([foreignFault(own), foreignFault(Buffer.from('#!/bin/sh\necho a long script'))]).toEqual([null, null])
  expect(foreignFault(own, other)).toMatch(/another kind of processor than this one/)
})
