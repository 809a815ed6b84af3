import type { TreeMessage } from '../conversation/tree.ts'
import { fileOfDataUrl } from './data-url.ts'
import { storeFile } from './store-file.ts'

const hasContent = ({ files = [] }: Pick<TreeMessage, 'files'>): boolean =>
  files.some(({ id }) => id.startsWith('data:'))

/**
 * Returns the messages with the images that they have as their content, as those of a job do, stored as files: conversations and
 * requests name files. Messages without such images are the same objects. Rejects with ApiFailure.
 */
export const withStoredContent = (messages: readonly TreeMessage[]): Promise<TreeMessage[]> =>
  Promise.all(messages.map(async one => (hasContent(one) ? await withStoredFiles(one) : one)))

async function withStoredFiles(message: TreeMessage): Promise<TreeMessage> {
  const stored = message.files!.map(async file => {
    const content = fileOfDataUrl(file.id)
    return content ? { ...file, id: await storeFile(content) } : file
  })
  return { ...message, files: await Promise.all(stored) }
}
