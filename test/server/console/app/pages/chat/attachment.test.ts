import { expect, test } from 'vitest'
import { kindNotTaken, sortFile } from '../../../../../../server/console/app/pages/chat/attachments/attachment.ts'

const file = (name: string, type = '', content: string | Uint8Array<ArrayBuffer> = 'x') =>
  new File([content], name, { type })
const ofSize = (type: string, size: number) => ({ name: 'a', type, size }) as File

test.each([
  [file('a.png', 'image/png'), { kind: 'image', name: 'a.png' }],
  [file('a.svg', 'image/svg+xml', '<svg/>'), { kind: 'text', name: 'a.svg' }],
  [file('a.wav', 'audio/x-wav'), { kind: 'audio', name: 'a.wav' }],
  [file('voice', 'audio/mpeg'), { kind: 'audio', name: 'voice.mp3' }],
  [file('mp3', 'audio/mpeg'), { kind: 'audio', name: 'mp3.mp3' }],
  [file('A.MP3'), { kind: 'audio', name: 'A.MP3' }],
  [file('a.ogg', 'audio/ogg'), { refused: 'audioFormat' }],
  [file('a.mp4', 'video/mp4'), { refused: 'audioFormat' }],
  [file('a.md', 'text/markdown', 'äöü'), { kind: 'text', name: 'a.md' }],
  [file('Makefile', '', 'all:\n'), { kind: 'text', name: 'Makefile' }],
  [file('a.pdf', 'application/pdf', '%PDF-1.7'), { refused: 'noText' }],
  [file('a.bin', '', Uint8Array.of(0xff, 0xfe, 0x80)), { refused: 'noText' }],
  [file('a.txt', 'text/plain', ''), { refused: 'empty' }],
  [ofSize('image/png', (10 << 20) + 1), { refused: 'large', kind: 'image' }],
  [ofSize('audio/wav', (25 << 20) + 1), { refused: 'large', kind: 'audio' }],
  [ofSize('text/plain', (1 << 20) + 1), { refused: 'large', kind: 'text' }],
])('%o is sorted', async (given, sorted) => {
  expect(await sortFile(given)).toEqual(sorted)
})

test.each([
  [['text'], [[]], undefined],
  [['image'], [['images'], ['images', 'audio']], undefined],
  [['text', 'image'], [['images'], ['audio']], 'image'],
  [['audio'], [['images']], 'audio'],
] as const)('files of the kinds %j for models with %j', (kinds, features, lacking) => {
  expect(
    kindNotTaken(
      kinds.map(kind => ({ kind })),
      features,
    ),
  ).toBe(lacking)
})
