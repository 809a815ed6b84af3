import { expect, test } from 'vitest'
import { type ChatInput, parseChatInput } from '../../../cli/chat/chat-input.ts'

const lines: [line: string, meaning: ChatInput][] = [
  ['', { does: 'nothing' }],
  ['   ', { does: 'nothing' }],
  ['hello', { does: 'say', text: 'hello' }],
  [' hello  world ', { does: 'say', text: 'hello  world' }],
  ['//etc/passwd is a file', { does: 'say', text: '/etc/passwd is a file' }],
  ['/clear', { does: 'clear' }],
  ['/help', { does: 'help' }],
  ['/?', { does: 'help' }],
  ['/exit', { does: 'leave' }],
  ['/quit', { does: 'leave' }],
  ['/bye', { does: 'leave' }],
  ['/model', { does: 'model', id: undefined }],
  ['/model  org/name:tag ', { does: 'model', id: 'org/name:tag' }],
  ['/system', { does: 'system', text: undefined }],
  ['/system Be brief.  Please.', { does: 'system', text: 'Be brief.  Please.' }],
  ['/system -', { does: 'system', text: '-' }],
  ['/sytem Be brief.', { does: 'unknown', word: '/sytem' }],
  ['/image cat 1.png', { does: 'image', path: 'cat 1.png' }],
  ['/file', { does: 'file', path: undefined }],
  ['/save talk.md', { does: 'save', path: 'talk.md' }],
  ['/usr/bin/x: not found\nwhy?', { does: 'say', text: '/usr/bin/x: not found\nwhy?' }],
  ['/system One.\nTwo.', { does: 'system', text: 'One.\nTwo.' }],
  ['/', { does: 'unknown', word: '/' }],
]

test.each(lines)('"%s"', (line, meaning) => {
  expect(parseChatInput(line)).toEqual(meaning)
})
