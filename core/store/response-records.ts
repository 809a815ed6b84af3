/** A stored response. Its texts are JSON. */
export interface ResponseRecord {
  organizationId: string
  id: string
  tokenId: string
  /** The response that it continues. */
  previousId: string | null
  /** The job that makes its answer; null if it was made at once. */
  jobId: string | null
  /** What the answer repeats of the request. */
  request: string
  /** The items of the request. */
  input: string
  /** The response; null if a job makes it. */
  answer: string | null
  /** Epoch milliseconds. */
  createdAt: number
  /** Epoch milliseconds; null: kept until it is deleted. */
  expiresAt: number | null
}

/** Responses that are kept so that they can be read and continued. */
export interface ResponseStore {
  add(record: ResponseRecord): Promise<void>
  /** Undefined: the organization has no such response, or it has expired. */
  find(organizationId: string, id: string, now: number): Promise<ResponseRecord | undefined>
  /** False: there is no such response. */
  remove(organizationId: string, id: string): Promise<boolean>
}
