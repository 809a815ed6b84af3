import { Option } from 'commander'
import { roles } from '../../core/store/store.ts'

/** Options that every command about users has. */
export interface CommonOptions {
  org?: string
  json?: boolean
  dataDir?: string
}

export const roleOption = (description: string): Option => new Option('--role <role>', description).choices(roles)
