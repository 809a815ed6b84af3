import { expect, test } from 'vitest'
import { openAsIs } from '../../../../core/store/sqlite/database.ts'
import { waitingTime } from '../../../../core/store/sqlite/migrations/030-waiting-time.ts'

test('executions that only wait stop their clock, from the inner one outwards, and lists count their items that wait', () => {
  using connection = openAsIs(':memory:')
  connection.exec(`
    CREATE TABLE executions (number INTEGER PRIMARY KEY, organization_id, parent_job, finished_at, waiting, timeout_at, updated_at);
    CREATE TABLE execution_nodes (execution, node, items);
    CREATE TABLE jobs (id, organization_id, execution, node, item, finished_at, awaits);
    CREATE TABLE waits (created_at, due_at);
    INSERT INTO waits VALUES (5, NULL), (5, 7);
    INSERT INTO executions VALUES (1, 'o', NULL, NULL, 1, 100, 40), (2, 'o', 'j1', NULL, 1, 90, 50),
      (3, 'o', NULL, NULL, 1, 100, 40), (4, 'o', NULL, NULL, 0, 100, 40);
    INSERT INTO jobs VALUES ('j1', 'o', 1, 0, NULL, NULL, 'execution'), ('j2', 'o', 2, 0, NULL, NULL, 'approval'),
      ('j3', 'o', 3, 0, NULL, NULL, 'event'), ('j4', 'o', 3, 1, NULL, NULL, NULL),
      ('l', 'o', 4, 0, NULL, NULL, 'items'), ('l0', 'o', 4, 0, 0, NULL, 'time'), ('l1', 'o', 4, 0, 1, NULL, 'time'),
      ('l2', 'o', 4, 0, 2, 60, NULL), ('l3', 'o', 4, 0, 3, NULL, NULL);
    INSERT INTO execution_nodes VALUES (1, 0, NULL), (4, 0, 4);
  `)
  connection.exec(waitingTime)
  const column = (sql: string) => connection.prepare(sql).pluck().all()
  expect(column('SELECT remaining_ms FROM executions')).toEqual([60, 40, null, null])
  expect(column('SELECT timeout_at FROM executions')).toEqual([null, null, 100, 100])
  expect(column('SELECT items_waiting FROM execution_nodes')).toEqual([0, 2])
  expect(column('SELECT due_at FROM waits')).toEqual([7_776_000_005, 7])
})
