import { isId } from '../../ids.ts'

const itemPrefixes = { message: 'msg', function_call: 'fc', function_call_output: 'fco', reasoning: 'rs' } as const

/** Returns the id of an item of a response's output, or of its input. It contains the id of the response. */
export const itemId = (type: string, responseId: string, index: number, from: 'input' | 'output' = 'output'): string =>
  `${itemPrefixes[type as keyof typeof itemPrefixes] ?? 'item'}_${responseId.slice('resp_'.length)}${from === 'input' ? 'i' : 'o'}${index}`

/** Returns the response that has the item; undefined for an id that was not made here. */
export function responseOfItem(id: string): string | undefined {
  const ulid = /^[a-z]+_([0-9A-Z]{26})[io]\d{1,6}$/.exec(id)?.[1]
  const found = `resp_${ulid}`
  return ulid !== undefined && isId(found) ? found : undefined
}
