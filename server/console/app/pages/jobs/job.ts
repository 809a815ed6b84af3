import type { Schema } from '../../api/client.ts'

export type Job = Schema<'Job'>

export const hasEnded = ({ status }: Pick<Job, 'status'>): boolean => status !== 'pending' && status !== 'processing'
