import type { Connection } from './database.ts'

export type Value = string | number | Buffer | null

/**
 * Inserts rows into a table, always so many by one statement. A column that has one value in all of them is bound once: binding
 * a value costs more than SQLite's work with it. A column that has had several values in some rows is bound for each row from
 * then on, so that few statements are ever prepared.
 */
export function openInsertRows(
  connection: Connection,
  table: string,
  columns: readonly string[],
  rowsAtOnce: number,
): (rows: readonly (readonly Value[])[]) => void {
  const varies = columns.map(() => false)
  let insert = prepare()

  function prepare() {
    const row = `(${columns.map((name, at) => (varies[at] ? '?' : `:${name}`)).join(', ')})`
    const rows = Array.from({ length: rowsAtOnce }, () => row).join(', ')
    return connection.statement`INSERT INTO ${table} (${columns.join(', ')}) VALUES ${rows}`
  }

  function findVarying(rows: readonly (readonly Value[])[]): boolean {
    const [first] = rows
    let hasFound = false
    for (let at = 0; at < columns.length; at++) {
      if (varies[at] || rows.every(row => row[at] === first![at])) continue
      varies[at] = hasFound = true
    }
    return hasFound
  }

  return rows => {
    if (findVarying(rows)) insert = prepare()
    const each: Value[] = []
    const once: Record<string, Value> = {}
    for (let at = 0; at < columns.length; at++) if (!varies[at]) once[columns[at]!] = rows[0]![at]!
    for (const row of rows) for (let at = 0; at < columns.length; at++) if (varies[at]) each.push(row[at]!)
    insert.run(each, once)
  }
}
