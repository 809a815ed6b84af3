import { expect, test } from 'vitest'
import { type ChatInput, parseChatInput } from '../../../cli/chat/session.ts'

const lines: [line: string, meaning: ChatInput][] = [
  ['', { kind: 'empty' }],
  ['   ', { kind: 'empty' }],
  ['hello', { kind: 'message', text: 'hello' }],
  [' hello  world ', { kind: 'message', text: 'hello  world' }],
  ['//etc/passwd is a file', { kind: 'message', text: '/etc/passwd is a file' }],
  ['/clear', { kind: 'clear' }],
  ['/help', { kind: 'help' }],
  ['/?', { kind: 'help' }],
  ['/exit', { kind: 'exit' }],
  ['/quit', { kind: 'exit' }],
  ['/bye', { kind: 'exit' }],
  ['/model', { kind: 'model', id: undefined }],
  ['/model  org/name:tag ', { kind: 'model', id: 'org/name:tag' }],
  ['/system', { kind: 'system', text: undefined }],
  ['/system Be brief.  Please.', { kind: 'system', text: 'Be brief.  Please.' }],
  ['/system -', { kind: 'system', text: '-' }],
  ['/sytem Be brief.', { kind: 'unknown', word: '/sytem' }],
  ['/image cat 1.png', { kind: 'image', path: 'cat 1.png' }],
  ['/file', { kind: 'file', path: undefined }],
  ['/save talk.md', { kind: 'save', path: 'talk.md' }],
  ['/usr/bin/x: not found\nwhy?', { kind: 'message', text: '/usr/bin/x: not found\nwhy?' }],
  ['/system One.\nTwo.', { kind: 'system', text: 'One.\nTwo.' }],
  ['/', { kind: 'unknown', word: '/' }],
]

test.each(lines)('"%s"', (line, meaning) => {
  expect(parseChatInput(line)).toEqual(meaning)
})
