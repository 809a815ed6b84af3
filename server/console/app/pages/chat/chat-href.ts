import { addressWith } from '../../components/use-address.ts'

/**
 * The address of a conversation, or of a new one, with the words that the list is searched for. What the address of the
 * page says of a new conversation, its model and the job that it begins with, is no part of it.
 */
export const chatHref = (page: URLSearchParams, id?: string): string =>
  addressWith(id === undefined ? '/chat' : `/chat/${id}`, page, { job: '', model: '' })
