import { uploadFile } from '../../../api/upload.ts'
import { placeOfNew } from '../conversation/registry.ts'
import { placeOf } from '../store/stored.ts'

/** Seconds for which a file is stored that belongs to a conversation in this browser. One on the server has no end. */
const browserKeepSeconds = 2_592_000

/**
 * Stores a file of a conversation and resolves with its id; `conversation` is the id of one that is kept. Rejects with
 * ApiFailure.
 */
export async function storeFile(file: File, conversation?: string): Promise<string> {
  const place = conversation === undefined ? await placeOfNew() : placeOf(conversation)
  const keepSeconds = place === 'browser' ? browserKeepSeconds : undefined
  return (await uploadFile(file, { purpose: 'user_data', keepSeconds })).id
}
