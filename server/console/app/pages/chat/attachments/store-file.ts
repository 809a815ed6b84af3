import { inputKeepSeconds, uploadFile } from '../../../api/upload.ts'
import { placeOfNew } from '../conversation/registry.ts'
import { placeOf } from '../store/stored.ts'

/**
 * Stores a file of a conversation and resolves with its id; `conversation` is the id of one that is kept. Files of
 * conversations on the server are kept until they are deleted. Rejects with ApiFailure.
 */
export async function storeFile(file: File, conversation?: string): Promise<string> {
  const place = conversation === undefined ? await placeOfNew() : placeOf(conversation)
  const keepSeconds = place === 'browser' ? inputKeepSeconds : undefined
  return (await uploadFile(file, { purpose: 'user_data', keepSeconds })).id
}
