import { expect, test } from 'vitest'
import { peerText } from '../../../cli/status/peer-text.ts'

const peer = { name: 'box2', url: 'http://box:8787', models: 2, listed_at: 1, fault: null }
const fault = "The peer 'box2' (http://box:8787) cannot be reached: ECONNREFUSED."

test.each([
  [peer, 'peer box2 (http://box:8787): 2 models'],
  [{ ...peer, models: 0, listed_at: null }, 'peer box2 (http://box:8787): has not answered yet'],
  [{ ...peer, fault }, `${fault} 2 models of it are known.`],
  [{ ...peer, models: 1, fault }, `${fault} 1 model of it is known.`],
  [{ ...peer, models: 0, listed_at: null, fault }, fault],
])('%j is told as: %s', (status, text) => expect(peerText(status)).toBe(text))
