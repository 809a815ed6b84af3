import { broken, type Finding, fine, warning } from './finding.ts'

export interface MasterKeyFacts {
  dataDir: string
  /** Whether INFER_MASTER_KEY is set. */
  inEnvironment: boolean
  /** INFER_MASTER_KEY_FILE. */
  file: string | undefined
  /** Permission bits of that file; undefined where it does not exist. */
  mode: number | undefined
}

/** Checks where the master key comes from. Pure. */
export function checkMasterKey({ dataDir, inEnvironment, file, mode }: MasterKeyFacts): Finding {
  const name = 'master key'
  if (file !== undefined && inEnvironment)
    return broken(name, 'INFER_MASTER_KEY and INFER_MASTER_KEY_FILE are both set', 'Unset INFER_MASTER_KEY.')
  if (inEnvironment)
    return warning(
      name,
      'INFER_MASTER_KEY stays visible in the environment of the process (/proc/<pid>/environ, process managers, dumps)',
      'Write the key to a file with mode 0600 and set INFER_MASTER_KEY_FILE to its path.',
    )
  if (file === undefined) return fine(name, `in ${dataDir}/master-key, created at the first start`)
  if (mode === undefined)
    return broken(name, `there is no file ${file}`, 'Create it, or correct INFER_MASTER_KEY_FILE.')
  if (mode & 0o077)
    return warning(name, `others can read ${file} (mode ${(mode & 0o777).toString(8)})`, `chmod 600 ${file}`)
  return fine(name, `in ${file}`)
}
